"""One request to an API server: verb, object, and the words for both in errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from meshwright.kube.resource import Resource

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the API server: the verb of RBAC, the object, and the parameters."""

    verb: str
    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content: str = JSON

    @property
    def method(self) -> str:
        """Return the HTTP method for the verb."""
        return _METHODS[self.verb]

    @property
    def path(self) -> str:
        """Return the URL path with the query."""
        path = self.resource.path(self.namespace, self.name, self.subresource)
        return f"{path}?{urlencode(self.params)}" if self.params else path

    @property
    def granted(self) -> str:
        """Return the resource to which RBAC must grant the verb, for example `services/status`."""
        plural, group = self.resource.plural, self.resource.group
        part = f"{plural}/{self.subresource}" if self.subresource else plural
        return f"{part}.{group}" if group else part

    @property
    def object_text(self) -> str:
        """Return the object for a sentence, for example `services shop/cart` or `pods in namespace shop`."""
        if self.name:
            where = "/".join(filter(None, (self.namespace, self.name, self.subresource)))
            return f"{self.resource.name} {where}"
        return f"{self.resource.name} in namespace {self.namespace}" if self.namespace else self.resource.name


_METHODS: Final = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}
