"""Meshes for benchmarks: of any size, as manifests, with the changes that a user makes, and as resources.

It never starts a program.
"""
