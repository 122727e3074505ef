"""Requests to a running server through the Unix socket in its state directory.

The package never reads files of the state directory. Read next: `client`.
"""
