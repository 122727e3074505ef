"""The verbs of an API server. Every failure is a KubeError with the verb and the resource in the message."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Final, Self

from meshwright.kube.builtin import PODS
from meshwright.kube.call import JSON, Call
from meshwright.kube.connection.connection import Connection
from meshwright.kube.lists import Objects
from meshwright.kube.resource import Raw, Resource
from meshwright.kube.streams import value
from meshwright.kube.transport import ANSWER_SECONDS, Batches, Transport

PAGE: Final = 500
"""Objects in one page of a list."""

_APPLY: Final = "application/apply-patch+yaml"  # JSON is valid YAML
_MERGE: Final = "application/merge-patch+json"
_PATCH: Final = "application/json-patch+json"


class Api:
    """Client of one API server over kept-alive connections; an asynchronous context manager.

    `agent` is the User-Agent, and `answer` the maximum seconds until an answer.
    """

    def __init__(
        self, connection: Connection, agent: str = "meshwright", answer: float = ANSWER_SECONDS
    ) -> None:
        self._connection = connection
        self._transport = Transport(connection, agent, answer)

    @property
    def name(self) -> str:
        """Return the name of the cluster."""
        return self._connection.name

    @property
    def server(self) -> str:
        """Return the URL of the API server."""
        return self._connection.server

    @property
    def fingerprint(self) -> str:
        """Return an identifier of the API server, without a request (see Connection.fingerprint)."""
        return self._connection.fingerprint

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    async def get(
        self, resource: Resource, namespace: str | None, name: str, *, subresource: str = ""
    ) -> Raw:
        """Return an object from the API server, or its subresource."""
        return await self._object(Call("get", resource, namespace, name, subresource))

    async def list(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Raw:
        """Return all objects, from any number of pages, as one list with `items` and `metadata`."""
        objects = self.objects(resource, namespace, selecting(labels, fields))
        async with aclosing(objects.stream_all()) as item:
            items = [raw async for raw in item]
        return {**objects.rest, "items": items}

    def objects(
        self, resource: Resource, namespace: str | None, params: Mapping[str, str], limit: int = PAGE
    ) -> Objects:
        """Return all objects as they arrive, in pages of `limit` objects; 0 means one page."""
        limited = {"limit": str(limit)} if limit else {}
        return Objects(self._transport, Call("list", resource, namespace, params={**params, **limited}))

    async def create(
        self, resource: Resource, namespace: str | None, body: Raw, *, dry_run: bool = False
    ) -> Raw:
        """Create an object and return the stored object."""
        return await self._object(Call("create", resource, namespace, params=_dry(dry_run), body=body))

    async def apply(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Raw,
        *,
        manager: str,
        subresource: str = "",
        force: bool = True,
        dry_run: bool = False,
    ) -> Raw:
        """Set the fields in `body` by server-side apply, and return the object.

        Fields set earlier by `manager` and missing in `body` are removed. With `force` fields of other
        managers are taken over; without `force` they cause a conflict.
        """
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        params = {"fieldManager": manager, "force": "true" if force else "false"} | _dry(dry_run)
        return await self._object(
            Call("patch", resource, namespace, name, subresource, params, whole, _APPLY)
        )

    async def replace(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Raw,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Raw:
        """Replace an object and return the stored object.

        A conflict is raised if the resourceVersion in `body` is not current.
        """
        return await self._object(Call("update", resource, namespace, name, subresource, _dry(dry_run), body))

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: object,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Raw:
        """Change an object by a merge patch (a mapping) or a JSON patch (a list), and return the object."""
        content = _PATCH if isinstance(patch, list) else _MERGE
        call = Call("patch", resource, namespace, name, subresource, _dry(dry_run), patch, content)
        return await self._object(call)

    async def delete(self, resource: Resource, namespace: str | None, name: str, *, version: str = "") -> Raw:
        """Delete an object. Return the object being deleted, or a Status object.

        A conflict is raised if `version` is given and is not the current resourceVersion.
        """
        body = {"preconditions": {"resourceVersion": version}} if version else None
        return await self._object(Call("delete", resource, namespace, name, body=body))

    async def read(self, path: str, accept: str = JSON) -> Raw:
        """Return the JSON answer at a path outside of the resources, for example `/apis` or `/version`."""
        asked = f"{path.partition('?')[0]}"
        call = Call("get", Resource("", "", asked, "", namespaced=False))
        return value(await self._transport.answered(call, path, {"Accept": accept}))

    async def proxied(self, namespace: str, pod: str, port: int, path: str) -> str:
        """Return the text at a path of a Pod, through the API server's proxy; raise KubeError."""
        call = Call("get", PODS, namespace, f"{pod}:{port}", "proxy")
        result = await self._transport.answered(call, f"{call.path}{path}", is_json=False)
        return result.decode(errors="replace")

    def watch(
        self, resource: Resource, namespace: str | None, params: Mapping[str, str], silence: float
    ) -> AbstractAsyncContextManager[Batches]:
        """Watch objects. The block gets an iterator of batches, each with the lines that arrived together.

        The iterator ends when the server ends the watch. A broken watch, or one without any line for
        `silence` seconds, raises ApiUnreachable.
        """
        call = Call("watch", resource, namespace, params={**params, "watch": "true"})
        return self._transport.lines(call, silence)

    async def _object(self, call: Call) -> Raw:
        return value(await self._transport.answered(call))


def selecting(labels: str, fields: str) -> dict[str, str]:
    """Return the query parameters for a label selector and a field selector; empty ones are left out."""
    given = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in given.items() if text}


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
