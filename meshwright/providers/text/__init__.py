"""Manifests as text: documents, YAML values, and the line and column of each.

It never knows a kind of object.
"""
