"""Names of the Deployments and webhooks of Open Service Mesh's control plane in a cluster."""

from typing import Final

CONTROL_PLANE: Final = frozenset({"osm-bootstrap", "osm-controller", "osm-injector"})
"""Deployments of OSM's control plane."""

WEBHOOKS: Final = frozenset({"osm-inject.k8s.io", "osm-validator.k8s.io"})
"""OSM's webhooks, by the name within their configuration."""
