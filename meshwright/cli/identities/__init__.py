"""Certificates and join tokens for the command line: by the running server, or from the state directory.

It never prints a private key.
"""
