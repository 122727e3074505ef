"""An in-memory cluster behind a real HTTP server, with the parts of the Kubernetes API that a source uses."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from aiohttp import web

from meshwright.kube.api import Api
from meshwright.kube.connection.access import Access, Server, User
from meshwright.kube.connection.connection import Connection
from meshwright.kube.resource import Resource
from meshwright.mesh.kinds import NAMESPACE
from meshwright.providers.kubernetes.resources import CORE

Raw = dict[str, Any]

_NOT_STREAMED: Final = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"


def crd(group: str, version: str, plural: str, kind: str) -> Resource:
    """Return a resource that a CRD defines."""
    return Resource(group, version, plural, kind)


TARGETS: Final = crd("access.smi-spec.io", "v1alpha3", "traffictargets", "TrafficTarget")
WORKLOADS: Final = crd("meshwright.dev", "v1alpha1", "workloads", "Workload")


class Cluster:
    """Objects by resource, served kinds, and simulated errors.

    `forbidden` has plurals that must not be listed or watched. `uid` is the UID of kube-system, or None if
    reading it is forbidden. With `says`, every answer has that HTTP status. `asked` has the path of each
    request.
    """

    def __init__(self, *crds: Resource) -> None:
        self.served = [*CORE.values(), *crds]
        self.forbidden: set[str] = set()
        self.uid: str | None = "uid-of-east"
        self.says = 0
        self.asked: list[str] = []
        self._versions = itertools.count(1)
        self._forgotten = 0
        self._objects: dict[str, dict[tuple[str, str], Raw]] = {}
        self._watches: dict[str, set[asyncio.Queue[Raw | None]]] = {}
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def start(self) -> None:
        """Start the server, on the same port as before."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop the server, and end all open requests."""
        self.end_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def end_watches(self) -> None:
        """End every watch."""
        for queue in itertools.chain(*self._watches.values()):
            queue.put_nowait(None)

    @contextlib.asynccontextmanager
    async def api(self, name: str = "east") -> AsyncIterator[Api]:
        """Open a connection to the cluster."""
        access = Access(Server(name, f"http://127.0.0.1:{self._port}", ca=b""), User())
        async with Api(Connection(lambda: access)) as result:
            yield result

    def put(self, resource: Resource, raw: Raw) -> None:
        """Create an object, or replace the object of the same name."""
        metadata = raw["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        there = self._objects.setdefault(resource.name, {})
        kind = "MODIFIED" if key in there else "ADDED"
        there[key] = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            **raw,
            "metadata": {"uid": f"uid-{key[1]}", **metadata, "resourceVersion": str(next(self._versions))},
        }
        self._tell(resource, kind, there[key])

    def delete(self, resource: Resource, name: str, namespace: str = "shop", *, told: bool = True) -> None:
        """Remove an object; without `told`, watches get no event and their version becomes too old."""
        gone = self._objects[resource.name].pop((namespace if resource.namespaced else "", name))
        gone["metadata"]["resourceVersion"] = str(next(self._versions))
        if told:
            self._tell(resource, "DELETED", gone)
        else:
            self._forgotten = int(gone["metadata"]["resourceVersion"])

    def _tell(self, resource: Resource, kind: str, raw: Raw) -> None:
        for queue in self._watches.get(resource.name, ()):
            queue.put_nowait({"type": kind, "object": raw})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if request.path == "/apis" and "apis" in self.forbidden:
            return _failure(403, "Forbidden", 'User "mesh" cannot get path "/apis"')
        if self.says:
            return _failure(self.says, "InternalError", "it is broken")
        if request.path in ("/api", "/apis"):
            return web.json_response(self._discovery(core=request.path == "/api"))
        if request.path == CORE[NAMESPACE].path(None, "kube-system"):
            return self._system()
        for resource in self.served:
            for namespace in _namespaces(request.path, resource):
                return await self._objects_of(request, resource, namespace)
        return _failure(404, "NotFound", "the server could not find the requested resource")

    def _system(self) -> web.Response:
        if self.uid is None:
            text = 'namespaces "kube-system" is forbidden: User "mesh" cannot get resource "namespaces"'
            return _failure(403, "Forbidden", text)
        metadata = {"name": "kube-system", "uid": self.uid, "resourceVersion": "1"}
        return web.json_response({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata})

    async def _objects_of(
        self, request: web.Request, resource: Resource, namespace: str | None
    ) -> web.StreamResponse:
        verb = "watch" if "watch" in request.query else "list"
        if resource.plural in self.forbidden:
            where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
            what = f'resource "{resource.plural}" in API group "{resource.group}" {where}'
            text = f'{resource.plural} is forbidden: User "mesh" cannot {verb} {what}'
            return _failure(403, "Forbidden", text)
        if "sendInitialEvents" in request.query:
            return _failure(422, "Invalid", _NOT_STREAMED)
        name = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        if verb == "watch":
            return await self._watch(request, resource, namespace, name)
        items = [
            {field: value for field, value in raw.items() if field not in ("kind", "apiVersion")}
            for (space, own), raw in sorted(self._objects.get(resource.name, {}).items())
            if namespace in (None, space) and name in ("", own)
        ]
        metadata = {"resourceVersion": str(next(self._versions))}
        kind = f"{resource.kind}List"
        return web.json_response(
            {"kind": kind, "apiVersion": resource.api_version, "metadata": metadata, "items": items}
        )

    async def _watch(
        self, request: web.Request, resource: Resource, namespace: str | None, name: str
    ) -> web.StreamResponse:
        if int(request.query["resourceVersion"]) < self._forgotten:
            return _failure(410, "Expired", "too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        queue: asyncio.Queue[Raw | None] = asyncio.Queue()
        watching = self._watches.setdefault(resource.name, set())
        for raw in self._objects.get(resource.name, {}).values():
            if int(raw["metadata"]["resourceVersion"]) > int(request.query["resourceVersion"]):
                queue.put_nowait({"type": "MODIFIED", "object": raw})
        watching.add(queue)
        try:
            await response.prepare(request)
            while (event := await queue.get()) is not None:
                metadata = event["object"]["metadata"]
                if namespace in (None, metadata.get("namespace")) and name in ("", metadata["name"]):
                    await response.write(f"{json.dumps(event)}\n".encode())
        finally:
            watching.discard(queue)
        return response

    def _discovery(self, *, core: bool) -> Raw:
        groups: dict[str, dict[str, list[Raw]]] = {}
        for resource in self.served:
            if core is (not resource.group):
                groups.setdefault(resource.group, {}).setdefault(resource.version, []).append(
                    {
                        "resource": resource.plural,
                        "responseKind": {"kind": resource.kind},
                        "scope": "Namespaced" if resource.namespaced else "Cluster",
                        "verbs": ["get", "list", "watch"],
                    }
                )
        items = [
            {
                "metadata": {"name": group},
                "versions": [{"version": name, "resources": version} for name, version in versions.items()],
            }
            for group, versions in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}


def _namespaces(path: str, resource: Resource) -> Iterator[str | None]:
    """Yield the namespace that a list path of a kind selects, None for all; nothing for other paths."""
    if path == resource.path():
        yield None
    parts = path.split("/")
    if len(parts) > 3 and path == resource.path(parts[-2]):
        yield parts[-2]


def _failure(status: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": status}
    return web.json_response(body, status=status)
