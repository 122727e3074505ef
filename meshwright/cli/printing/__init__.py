"""Output for terminals and files: tables, lines and JSON.

It never asks a server.
"""
