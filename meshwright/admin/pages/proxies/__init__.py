"""Pages about proxies: the list, one proxy, its streams, pushes and resources; never a message to a proxy."""
