"""A request as seen by a server: path, headers, method, upgrades, and the match with an expression.

The package never reads a policy object.
"""
