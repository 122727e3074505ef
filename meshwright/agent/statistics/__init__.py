"""The golden figures of a proxy: who it calls and is called as, how often, how well and how fast.

`statistics` reads what Envoy counts, `counted` adds it up per edge of the mesh and keeps the series few,
`edges` says it in Prometheus' words, `page` is what Prometheus is given.
"""
