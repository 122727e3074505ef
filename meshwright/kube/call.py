"""One request to an API server: what is asked of what, and the words for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from meshwright.kube.resource import Resource

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """One request: RBAC's verb for it, what it is asked of, and how."""

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
        """The method of HTTP."""
        return _METHODS[self.verb]

    @property
    def path(self) -> str:
        """The path with its query."""
        path = self.resource.path(self.namespace, self.name, self.subresource)
        return f"{path}?{urlencode(self.params)}" if self.params else path

    @property
    def granted(self) -> str:
        """What RBAC has to grant the verb on."""
        plural, group = self.resource.plural, self.resource.group
        part = f"{plural}/{self.subresource}" if self.subresource else plural
        return f"{part}.{group}" if group else part

    @property
    def what(self) -> str:
        """That of which it is asked, in a sentence."""
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
