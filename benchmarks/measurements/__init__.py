"""Measurements of a mesh: its start, the cost of changes and of moving endpoints, and the bare server.

It never decides whether a figure is reached.
"""
