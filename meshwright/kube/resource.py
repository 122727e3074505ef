"""A kind as the API has it: where its objects are, and how RBAC and kubectl call it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Key = tuple[str, str]
"""An object's namespace, empty where it has none, and its name."""

Raw = Mapping[str, Any]
"""An object as the API server has it, in JSON's own values."""


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """A kind in one version: `Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")`.

    The group of the core kinds is empty.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What stands in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """How kubectl names it whatever the version: `services`, `endpointslices.discovery.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Return where all of them are, those of a namespace, one, or a part of one such as its status."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, *filter(None, (name, subresource))]
        return "".join(f"/{quote(part, safe='')}" for part in parts)

    def __str__(self) -> str:
        return self.name
