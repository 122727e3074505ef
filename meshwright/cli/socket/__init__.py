"""Requests to a running server through its Unix socket.

It never reads the state directory.
"""
