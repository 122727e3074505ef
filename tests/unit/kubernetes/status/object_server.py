"""An API server in memory for the status of objects of one kind, with resourceVersions and conflicts."""

import copy
import json
from collections.abc import Callable
from typing import Any

from tests.unit.kube.scripted_api import Line, ReceivedRequest


def service_parent(name: str, **fields: object) -> dict[str, object]:
    """Return a parentRef as written: a Service."""
    return {"group": "", "kind": "Service", "name": name, **fields}


class ObjectServer:
    """Objects by name; as `play`, the only part of a scripted server.

    `before_update` runs once before the next update, as another controller that writes first.
    """

    def __init__(self, plural: str = "httproutes") -> None:
        self._plural = plural
        self.objects: dict[str, dict[str, Any]] = {}
        self.before_update: Callable[[], None] | None = None
        self.requests: list[str] = []

    def put(self, name: str, *parents: dict[str, object], generation: int = 1) -> None:
        """Create a route or replace its spec, as its owner does."""
        route = self.objects.setdefault(name, {"metadata": {"name": name, "namespace": "default"}})
        route["spec"] = {"parentRefs": list(parents)}
        route["metadata"] |= {"generation": generation}
        self._count(route)

    def recreate(self, name: str, uid: str) -> None:
        """Delete an object, and create one with its name and spec, as `kubectl replace --force` does."""
        spec = self.objects.pop(name)["spec"]
        metadata = {"name": name, "namespace": "default", "uid": uid, "generation": 1}
        self.objects[name] = {"metadata": metadata, "spec": spec}
        self._count(self.objects[name])

    def uid(self, name: str) -> str:
        """Return the UID of an object; empty for the first one of a name."""
        return str(self.objects[name]["metadata"].get("uid", ""))

    def set_status(self, name: str, entries: list[dict[str, Any]]) -> None:
        """Write the whole status, as another controller does."""
        self.objects[name]["status"] = {"parents": copy.deepcopy(entries)}
        self._count(self.objects[name])

    def entries(self, name: str) -> list[dict[str, Any]]:
        """Return the entries in the status of a route."""
        status: dict[str, Any] = self.objects[name].get("status", {})
        return list(status.get("parents", []))

    def take_requests(self) -> list[str]:
        """Return the methods of the requests since the last call."""
        result, self.requests = self.requests, []
        return result

    async def play(self, asked: ReceivedRequest, line: Line) -> None:
        """Answer a request like the API server: lists, reads and updates of the status."""
        self.requests.append(asked.method)
        *_, last = asked.path.split("/")
        if last == self._plural:
            items = list(self.objects.values())
            return await line.answer({"kind": "List", "metadata": {}, "items": items})
        name = asked.path.split("/")[-2] if last == "status" else last
        if name not in self.objects:
            return await line.refuse(404, "NotFound", "there is no such object")
        if asked.method == "GET":
            return await line.answer(self.objects[name])
        assert (asked.method, last) == ("PUT", "status")
        return await self._update(name, json.loads(asked.body), line)

    async def _update(self, name: str, body: dict[str, Any], line: Line) -> None:
        if self.before_update is not None:
            rival, self.before_update = self.before_update, None
            rival()
        route = self.objects[name]
        if body["metadata"]["resourceVersion"] != route["metadata"]["resourceVersion"]:
            return await line.refuse(409, "Conflict", "the object has been modified")
        route["status"] = body["status"]
        self._count(route)
        return await line.answer(route)

    def _count(self, route: dict[str, Any]) -> None:
        metadata = route["metadata"]
        metadata["resourceVersion"] = str(int(metadata.get("resourceVersion", "0")) + 1)
