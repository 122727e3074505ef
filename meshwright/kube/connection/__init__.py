"""The connection to an API server: kubeconfig, credentials, TLS and proxies.

It never sends a request.
"""
