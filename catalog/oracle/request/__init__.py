"""A request as a server sees it: path, headers, method, upgrades, and the match with an expression.

It never reads a policy object.
"""
