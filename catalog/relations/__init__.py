"""Facts that follow from the view before policy is read: groups of proxies, identities, backends of services.

It never decides which client may call which server.
"""
