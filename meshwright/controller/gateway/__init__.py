"""Certificate of the gateway in a MeshConfig, written to a Secret and renewed.

The package never configures the gateway: the gateway's owner does.
"""
