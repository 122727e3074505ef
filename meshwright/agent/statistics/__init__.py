"""The golden figures of a proxy: who it calls and is called as, how often, how well and how fast.

`statistics` reads what Envoy counts, `edges` and `backends` say it per edge of the mesh, `bounded` keeps the
series few, `page` is what Prometheus is given.
"""
