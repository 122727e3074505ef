"""A directory of manifests, read as the server reads it, without a server.

It never starts a server or a proxy.
"""
