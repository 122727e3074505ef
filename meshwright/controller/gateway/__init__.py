"""The certificate of the gateway that a MeshConfig names, written to a Secret and renewed.

It never configures a gateway.
"""
