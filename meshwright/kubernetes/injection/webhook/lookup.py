"""Lookups in a cluster for the injection of a Pod: its namespace, and the API server's version."""

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
    """An API server answers a request for a namespace, but without this namespace."""


class Lookup:
    """Lookups through an API server; `merged` returns the known objects of the mesh.

    A lookup queries the API server first, because labels of a namespace may be written a moment before its
    first Pod.
    If the API server does not answer, the known objects are used.
    """

    def __init__(self, api: Api, merged: Callable[[], MergedObjects]) -> None:
        self._api, self._merged = api, merged
        self._served: tuple[int, int] | None = None

    async def namespace(self, name: str, seconds: float) -> NamespaceObject:
        """Return a namespace with its labels, from the API server or else from the known objects.

        Raises KubeError or TimeoutError, if the request fails or takes more than `seconds` and the mesh does
        not know the namespace.

        The namespace is read by a list with one name. Such a list returns the stored state, as a get does,
        and needs only the permission for the watch of namespaces. Raises NotShownError if the list is empty,
        because the labels of an unseen namespace must not be guessed.
        """
        try:
            async with asyncio.timeout(seconds):
                result = await self._api.list(NAMESPACES, fields=f"metadata.name={name}")
        except (KubeError, TimeoutError):
            known = self._merged().in_force(ObjectKey(NAMESPACE, Namespace(""), name))
            if known is None or not isinstance(known.value, NamespaceObject):
                raise
            return known.value
        items = result["items"]
        if not items:
            raise NotShownError(f"the API server does not return namespace {name!r} (yet)")
        return namespace_of(items[0])

    async def version(self, seconds: float) -> tuple[int, int] | None:
        """Return the API server's version, or None while it is unknown. A known version is not read again."""
        if self._served is None:
            with contextlib.suppress(KubeError, TimeoutError):
                async with asyncio.timeout(seconds):
                    self._served = minor_version(await self._api.read("/version"))
        return self._served
