"""Interfaces for people and programs: the JSON API, debug pages, metrics, health, and the Unix socket.

The package sees the server through small protocols (`readers`). It never decides anything about the mesh, and
never shows a private key or a secret.
"""
