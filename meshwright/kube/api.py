"""An API server's verbs; whatever goes wrong is a KubeError that names the verb and the resource."""

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
"""Objects of one page."""

_APPLY: Final = "application/apply-patch+yaml"  # of which JSON is a part
_MERGE: Final = "application/merge-patch+json"
_PATCH: Final = "application/json-patch+json"


class Api:
    """An API server, over connections that are kept; an asynchronous context manager.

    `agent` is what we call ourselves there, `answer` how many seconds an answer may take.
    """

    def __init__(
        self, connection: Connection, agent: str = "meshwright", answer: float = ANSWER_SECONDS
    ) -> None:
        self._connection = connection
        self._transport = Transport(connection, agent, answer)

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self._connection.name

    @property
    def server(self) -> str:
        """The server's URL."""
        return self._connection.server

    @property
    def fingerprint(self) -> str:
        """What tells the server from others before it has answered (Connection.fingerprint)."""
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
        """Return an object."""
        return await self._object(Call("get", resource, namespace, name, subresource))

    async def list(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Raw:
        """Return all objects as one list, `items` and the list's `metadata`, from however many pages."""
        objects = self.objects(resource, namespace, selecting(labels, fields))
        async with aclosing(objects.each()) as each:
            items = [raw async for raw in each]
        return {**objects.rest, "items": items}

    def objects(
        self, resource: Resource, namespace: str | None, params: Mapping[str, str], limit: int = PAGE
    ) -> Objects:
        """Return all objects as they come, in pages of so many; in one page where that is none."""
        limited = {"limit": str(limit)} if limit else {}
        return Objects(self._transport, Call("list", resource, namespace, params={**params, **limited}))

    async def create(
        self, resource: Resource, namespace: str | None, body: Raw, *, dry_run: bool = False
    ) -> Raw:
        """Make an object, and return it."""
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
        """Have the fields of `body` be as they are there (server-side apply), and return the object.

        Fields that `manager` had and that are not there any more go. With `force` fields of others are taken
        over; without it that is a conflict.
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
        """Put `body` in an object's place, and return it; a conflict if it has another version by now."""
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
        """Change an object by a merge patch (a mapping) or a JSON patch (a list), and return it."""
        content = _PATCH if isinstance(patch, list) else _MERGE
        call = Call("patch", resource, namespace, name, subresource, _dry(dry_run), patch, content)
        return await self._object(call)

    async def delete(self, resource: Resource, namespace: str | None, name: str) -> Raw:
        """Have an object removed; the answer is the object on its way out, or a word about it."""
        return await self._object(Call("delete", resource, namespace, name))

    async def read(self, path: str, accept: str = JSON) -> Raw:
        """Return the answer at a path that is no resource's: what a server serves, or says of itself."""
        asked = f"{path.partition('?')[0]}"
        call = Call("get", Resource("", "", asked, "", namespaced=False))
        return value(await self._transport.answered(call, path, {"Accept": accept}))

    async def proxied(self, namespace: str, pod: str, port: int, path: str) -> str:
        """Return the text that a Pod answers at a path, by way of the API server; raise KubeError."""
        call = Call("get", PODS, namespace, f"{pod}:{port}", "proxy")
        found = await self._transport.answered(call, f"{call.path}{path}", is_json=False)
        return found.decode(errors="replace")

    def watch(
        self, resource: Resource, namespace: str | None, params: Mapping[str, str], silence: float
    ) -> AbstractAsyncContextManager[Batches]:
        """Watch: within the block there is an iterator of the lines that came at once, until the server ends.

        A watch that breaks, or is silent for so many seconds, raises Unreachable.
        """
        call = Call("watch", resource, namespace, params={**params, "watch": "true"})
        return self._transport.lines(call, silence)

    async def _object(self, call: Call) -> Raw:
        return value(await self._transport.answered(call))


def selecting(labels: str, fields: str) -> dict[str, str]:
    """Return the parameters that select objects."""
    given = {"labelSelector": labels, "fieldSelector": fields}
    return {name: said for name, said in given.items() if said}


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
