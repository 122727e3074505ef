"""Text of manifests: documents, YAML values and the line of each problem.

Modules here never need to know the kind of an object.
"""
