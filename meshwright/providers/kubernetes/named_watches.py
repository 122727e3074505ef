"""Watches of single objects by name: Secrets and ConfigMaps that gateways and their policies name.

Other Secrets and ConfigMaps are never requested. A request has the name of its object as field selector, so
that a Role with `resourceNames` is enough, bound in the namespaces whose objects gateways use:
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources. These objects are never
saved for the next run.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final

from meshwright.kube.api import Api
from meshwright.kube.builtin import CONFIG_MAPS, SECRETS
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.pacing import PACING, Pacing
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key, Resource
from meshwright.mesh.kinds import CONFIG_MAP, SECRET, Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.kubernetes.book import Changes
from meshwright.providers.kubernetes.named_objects import Names
from meshwright.providers.kubernetes.projection import projected
from meshwright.providers.kubernetes.running_watch import objects

NAMED: Final[Mapping[Kind, Resource]] = {CONFIG_MAP: CONFIG_MAPS, SECRET: SECRETS}
"""Kinds whose objects are watched by name alone."""


class NamedWatches:
    """The watches of objects by name; `on_changes` is called on the event loop with their changes.

    The changes are an empty mapping if only an error began or ended.
    """

    def __init__(
        self,
        api: Api,
        clock: Callable[[], datetime],
        on_changes: Callable[[Changes], None],
        *,
        pacing: Pacing = PACING,
    ) -> None:
        self._on_changes = on_changes
        self._reflectors = {
            kind: partial(
                Reflector[str],
                api,
                resource,
                partial(projected, kind, resource.api_version),
                clock,
                pacing=pacing,
            )
            for kind, resource in NAMED.items()
        }
        self._wanted: Names = frozenset()
        self._woken = asyncio.Event()
        self._tasks: dict[ObjectKey, asyncio.Task[None]] = {}
        self.at: dict[ObjectKey, Reflector[str]] = {}

    def want(self, names: Names) -> None:
        """Watch these objects from now on, and no others."""
        self._wanted = names
        self._woken.set()

    def is_settled(self) -> bool:
        """Return whether each wanted object has been listed, or could not be."""
        return self._wanted == self.at.keys() and all(
            reflector.listed.is_set() or reflector.figures.error for reflector in self.at.values()
        )

    def items_in(self, namespaces: frozenset[str]) -> Changes:
        """Return the known objects of namespaces."""
        result: dict[ObjectKey, Item[str] | None] = {}
        for key, reflector in self.at.items():
            if key.namespace in namespaces:
                result.update(objects(key.kind, reflector.items))
        return result

    async def run(self) -> None:
        """Watch the wanted objects until cancelled; errors of the API server never end this method."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._follow(group)
                await self._woken.wait()
                self._woken.clear()

    def _follow(self, group: asyncio.TaskGroup) -> None:
        """Begin the watches of newly wanted objects, and end the others."""
        for key in sorted(self.at.keys() - self._wanted):
            self._tasks.pop(key).cancel()
            self._on_changes(dict.fromkeys(objects(key.kind, self.at.pop(key).items)))
        for key in sorted(self._wanted - self.at.keys()):
            fields = f"metadata.name={key.name}"
            reflector = self._reflectors[key.kind](namespace=key.namespace, fields=fields)
            self.at[key] = reflector
            self._tasks[key] = group.create_task(
                reflector.run(partial(self._pass_changes, key, reflector)),
                name=f"kubernetes watch of {key}",
            )

    def _pass_changes(
        self, key: ObjectKey, reflector: Reflector[str], changes: Mapping[Key, Item[str] | None]
    ) -> None:
        if self.at.get(key) is reflector:  # stopped during a batch otherwise
            self._on_changes(objects(key.kind, changes))
