"""Synthetic resources of any number, and the common parts of servers for them.

The package never imports a mesh.
"""
