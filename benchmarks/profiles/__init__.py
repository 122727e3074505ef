"""Profiles of a running process from inside: CPU time by function, and memory by type.

The package imports nothing of the server, because the server may belong to another checkout.
"""
