"""Checks of client certificates, which never decide whether a client is admitted.

`certificate` is about the one that a gateway shows to backends, and `validation` about those of its clients.
"""
