"""A kind in the API: the paths of its objects, and its names for RBAC and kubectl."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Key = tuple[str, str]
"""Namespace (empty for a cluster-scoped object) and name of an object."""

Raw = Mapping[str, Any]
"""An object from the API server, as parsed JSON."""


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """A kind in one version.

    Example: `Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")`. The group of the core
    kinds is "".
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return the value of `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """Return kubectl's name without a version, for example `endpointslices.discovery.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Return the path of all objects, of the objects in a namespace, of one object or its subresource."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, *filter(None, (name, subresource))]
        return "".join(f"/{quote(part, safe='')}" for part in parts)

    def __str__(self) -> str:
        return self.name
