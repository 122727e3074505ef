"""Problems of Meshwright's own kinds: RoutePolicy, UpstreamPolicy, MutualTLS and others.

It never changes what is enforced.
"""
