"""Readers of Kubernetes' own kinds, with the fields that a mesh needs.

They never decide which endpoints receive traffic; `catalog` does.
"""
