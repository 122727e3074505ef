"""Policies as values: SMI's, those of Open Service Mesh, and our own.

It never reads a manifest, and never decides what a policy comes to: `meshwright.specs` and `catalog` do.
"""
