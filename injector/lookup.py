"""What is looked up in a cluster for a pod: its namespace, and the API server's version."""

import asyncio
import contextlib
from collections.abc import Callable

from injector.namespaces import namespace_of
from kube.api import Api
from kube.builtin import NAMESPACES, minor_version
from kube.errors import KubeError
from mesh.kinds import NAMESPACE
from mesh.names import Namespace
from mesh.objects import NamespaceObject, ObjectKey
from providers.merge import Merged


class Lookup:
    """Asks an API server; `merged` is what is known of the mesh's objects, asked each time.

    The API server says best what a namespace's labels are: they may have been written a moment before its
    first pod. Where it does not answer, what is known counts.
    """

    def __init__(self, api: Api, merged: Callable[[], Merged]) -> None:
        self._api, self._merged = api, merged
        self._served: tuple[int, int] | None = None

    async def namespace(self, name: str, seconds: float) -> NamespaceObject:
        """Return a namespace with its labels; raise KubeError or TimeoutError where nothing is known of it.

        One that is not there, which can only be by a race, says nothing.
        """
        try:
            async with asyncio.timeout(seconds):
                found = await self._api.list(NAMESPACES, fields=f"metadata.name={name}")
        except (KubeError, TimeoutError):
            known = self._merged().in_force(ObjectKey(NAMESPACE, Namespace(""), name))
            if known is None or not isinstance(known.value, NamespaceObject):
                raise
            return known.value
        items = found["items"]
        return namespace_of(items[0]) if items else NamespaceObject(Namespace(name))

    async def version(self, seconds: float) -> tuple[int, int] | None:
        """Return the API server's version, asked until it has said; None while it does not."""
        if self._served is None:
            with contextlib.suppress(KubeError, TimeoutError):
                async with asyncio.timeout(seconds):
                    self._served = minor_version(await self._api.read("/version"))
        return self._served
