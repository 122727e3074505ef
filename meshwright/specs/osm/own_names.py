"""What parts of Open Service Mesh itself are called in a cluster."""

from typing import Final

CONTROL_PLANE: Final = frozenset({"osm-bootstrap", "osm-controller", "osm-injector"})
"""The Deployments of its control plane."""

WEBHOOKS: Final = frozenset({"osm-inject.k8s.io", "osm-validator.k8s.io"})
"""Its webhooks, whatever the configurations are called in which they are."""
