"""Policy rules as Envoy messages: access (RBAC), rates, matches, headers and retries.

They are parts: the package never makes a whole resource, as `listeners`, `clusters` and `routes` do.
"""
