"""The server's parts as five records, each with the function that makes and joins its parts.

The order is core, cluster, proxies, identity, monitors: each function takes the records that it needs, so
that no part refers to one that is made later. Making them starts nothing, and they never run anything.
"""
