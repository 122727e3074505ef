"""Readers of manifests (SMI, Open Service Mesh, Kubernetes, our own kinds), which return values of the mesh.

A reader takes one mapping and returns mesh values or named problems, never an exception. It never reads a
file, knows YAML, keeps state between two manifests, or decides what a policy means.
"""
