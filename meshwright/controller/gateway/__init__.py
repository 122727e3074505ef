"""Certificate of the gateway in a MeshConfig, written to a Secret and renewed.

The configuration of the gateway itself is left to its owner.
"""
