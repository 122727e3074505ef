"""The server's parts as five records, each with a function for making and joining the parts.

The order is core, cluster, proxies, identity, monitors: each function takes the earlier records, so a part
never refers to a later one. The package only makes the parts, and never runs them.
"""
