"""A request as a server sees it: path, headers, method and upgrades, and whether it fits a match.

It never reads a policy object.
"""
