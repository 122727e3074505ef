"""An xDS v3 server: resources in snapshots, streams as value machines, gRPC at the edge.

It serves any resources to any nodes and can be used alone. It will never know meshes, policies or
certificates: who a client is, and what it gets, is told to it.
"""
