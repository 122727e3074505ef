"""A cluster as a source: its Services, Pods, endpoints and policies, as its API server has them.

`resources` says which kinds are watched and in which version, `projection` what is kept of an object, `scope`
whose namespaces count, `book` what all of it comes to, `kept` what outlives a restart; `source` is the edge.
How objects are listed and watched is in the package kube.
"""
