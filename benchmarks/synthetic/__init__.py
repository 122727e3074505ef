"""Servers of resources that no mesh has: what they serve, and what their programs share.

They never import a mesh.
"""
