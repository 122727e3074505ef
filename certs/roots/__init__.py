"""The mesh's own root while it is changed: what the change is, who holds it back, and where it is kept.

It will never ask a proxy anything: what proxies trust and show comes as values.
"""
