"""Connected, expected and former proxies: identity, certificate, state, and the effect of each on the mesh.

It never changes the configuration of a proxy.
"""
