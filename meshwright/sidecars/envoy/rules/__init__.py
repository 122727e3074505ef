"""Policy rules as Envoy messages: access (RBAC), rates, matches, headers and retries.

They are parts of resources, which `listeners`, `clusters` and `routes` assemble.
"""
