"""What is looked up in a cluster for a pod: its namespace, and the API server's version."""

import asyncio
import contextlib
from collections.abc import Callable

from meshwright.kube.api import Api
from meshwright.kube.builtin import NAMESPACES, minor_version
from meshwright.kube.errors import KubeError
from meshwright.kubernetes.injection.namespaces import namespace_of
from meshwright.mesh.kinds import NAMESPACE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey
from meshwright.providers.merge import MergedObjects


class NotShownError(Exception):
    """An API server does not show what is looked up there."""


class Lookup:
    """Asks an API server; `merged` is what is known of the mesh's objects, asked each time.

    The API server says best what a namespace's labels are: they may have been written a moment before its
    first pod. Where it does not answer, what is known counts.
    """

    def __init__(self, api: Api, merged: Callable[[], MergedObjects]) -> None:
        self._api, self._merged = api, merged
        self._served: tuple[int, int] | None = None

    async def namespace(self, name: str, seconds: float) -> NamespaceObject:
        """Return a namespace with its labels; raise KubeError or TimeoutError where nothing is known of it.

        The list of one name is read as a get is, from what is stored now, and needs no more than the watch of
        namespaces does. Raises NotShownError where it is empty: what a namespace says that is not seen is not
        guessed.
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
        if not items:
            raise NotShownError(f"the API server does not return namespace {name!r} (yet)")
        return namespace_of(items[0])

    async def version(self, seconds: float) -> tuple[int, int] | None:
        """Return the API server's version, asked until it has said; None while it does not."""
        if self._served is None:
            with contextlib.suppress(KubeError, TimeoutError):
                async with asyncio.timeout(seconds):
                    self._served = minor_version(await self._api.read("/version"))
        return self._served
