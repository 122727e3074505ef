"""Manifests as text: documents, YAML values, and where in a file each stands.

It knows no kind of object.
"""
