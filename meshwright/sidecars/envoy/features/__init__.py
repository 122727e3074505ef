"""Features of HTTP traffic: one module for each, applied in the order of `order`.

A feature adds to a connection manager (part of a listener) and to a route configuration, for example a filter
and its settings per route. `feature` defines the interface, and `order` explains the order of filters. Read
`order` next.

A feature never depends on another feature, only on the order.
"""
