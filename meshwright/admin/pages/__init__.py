"""The debug pages as JSON: pure functions of the state of the server.

A page never contains a private key.
"""
