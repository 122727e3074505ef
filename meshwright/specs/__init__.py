"""Readers of manifests: SMI's kinds, OSM's MeshConfig, core kinds and our Workload, as values of the mesh.

A reader takes one mapping and gives mesh values or named problems, never an exception. It will never
read a file, know YAML, keep state between two manifests, or decide what a policy means.
"""
