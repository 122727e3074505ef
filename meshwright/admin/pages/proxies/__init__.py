"""Pages about proxies: the list, one proxy, its streams, pushes and resources; nothing is sent to a proxy."""
