"""A request as a server sees it: path, headers, method, upgrades, and the match with an expression.

Policy objects are not read here.
"""
