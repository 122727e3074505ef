"""Pages about proxies: the list, one proxy, its streams, pushes and resources.

It never sends anything to a proxy.
"""
