"""Rules in Envoy's words: access (RBAC), rates, matches, headers and retries.

It never makes a whole resource: listeners, clusters and routes use these parts.
"""
