"""Parts of the explanation of a request to a gateway; see `catalog.explain.edge`.

The package never chooses the listener, the route or a backend: it words what `catalog.oracle.edge` decides.
"""
