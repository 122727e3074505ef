"""The mesh of a directory or a cluster, read as the server reads it, without a server.

`mesh` reads manifests and builds the view; `cluster` reads the objects of a cluster, and applies manifests to
them in memory. `selection` computes the snapshots that proxies would get. `chart`, `release` and `reference`
render the chart, the manifests of an installation, and the reference of all kinds.

The package never starts a server or a proxy. Read next: `mesh`.
"""
