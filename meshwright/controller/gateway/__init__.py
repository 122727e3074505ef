"""Certificate of the gateway in a MeshConfig, written to a Secret and renewed.

It never configures the gateway: its owner does.
"""
