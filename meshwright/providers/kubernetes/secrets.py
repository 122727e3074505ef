"""Watches of Secrets with certificates: one for each that a gateway of the mesh or its ListenerSet names.

Other Secrets are never requested. A request has the name of its Secret as field selector, so that a Role with
`resourceNames` is enough, bound in the namespaces whose Secrets gateways show:
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources. Secrets are never saved
for the next run.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Final

from meshwright.kube.api import Api
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.pacing import PACING, Pacing
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key, Resource
from meshwright.mesh.gateway.gateways import (
    CONTROLLER_NAME,
    Gateway,
    GatewayClass,
    ListenerSet,
    RoutesFrom,
)
from meshwright.mesh.kinds import GATEWAY, GATEWAY_CLASS, LISTENER_SET, SECRET
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.providers.kubernetes.book import Changes
from meshwright.providers.kubernetes.projection import projected
from meshwright.providers.kubernetes.running_watch import objects

SECRETS: Final = Resource("", "v1", "secrets", SECRET.name)

NAMED_IN: Final = frozenset({GATEWAY, GATEWAY_CLASS, LISTENER_SET})
"""Kinds whose objects decide which Secrets are watched."""

Names = frozenset[Key]


def secrets_named(in_force: Mapping[ObjectKey, SourcedObject]) -> Names:
    """Return the namespaces and names of the Secrets that gateways of Meshwright's classes name.

    Their ListenerSets count if the gateway may allow them. Labels of namespaces and ReferenceGrants are not
    considered: they decide whether a gateway shows a certificate, and the permission of the API server
    decides whether it is read.
    """
    found = [sourced.value for key, sourced in in_force.items() if key.kind in NAMED_IN]
    classes = {
        value.name
        for value in found
        if isinstance(value, GatewayClass) and value.controller == CONTROLLER_NAME
    }
    gateways: dict[PolicyKey, Gateway] = {
        value.key: value for value in found if isinstance(value, Gateway) and value.class_name in classes
    }
    sets = [value for value in found if isinstance(value, ListenerSet) and _may_attach(value, gateways)]
    owners: list[Gateway | ListenerSet] = [*gateways.values(), *sets]
    return frozenset(name for owner in owners for name in _certificates(owner))


def _may_attach(found: ListenerSet, gateways: Mapping[PolicyKey, Gateway]) -> bool:
    gateway = None if found.gateway is None else gateways.get(found.gateway)
    if gateway is None:
        return False
    match gateway.allowed_sets.namespaces:
        case RoutesFrom.NONE:
            return False
        case RoutesFrom.SAME:
            return found.key.namespace == gateway.key.namespace
        case RoutesFrom.ALL | RoutesFrom.SELECTOR:
            return True


def _certificates(owner: Gateway | ListenerSet) -> Iterator[Key]:
    for listener in owner.listeners:
        for reference in listener.tls.certificates if listener.tls is not None else ():
            if reference.kind == SECRET:
                yield reference.namespace or owner.key.namespace, reference.name


class SecretWatches:
    """The watches of Secrets by name; `on_changes` is called on the event loop with their changes.

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
        self._reflector = partial(
            Reflector[str],
            api,
            SECRETS,
            lambda raw: projected(SECRET, SECRETS.api_version, raw),
            clock,
            pacing=pacing,
        )
        self._wanted: Names = frozenset()
        self._woken = asyncio.Event()
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self.at: dict[Key, Reflector[str]] = {}

    def want(self, names: Names) -> None:
        """Watch these Secrets from now on, and no others."""
        self._wanted = names
        self._woken.set()

    def is_settled(self) -> bool:
        """Return whether each wanted Secret has been listed, or could not be."""
        return self._wanted == self.at.keys() and all(
            reflector.listed.is_set() or reflector.figures.error for reflector in self.at.values()
        )

    def items_in(self, namespaces: frozenset[str]) -> Changes:
        """Return the known Secrets of namespaces."""
        result: dict[ObjectKey, Item[str] | None] = {}
        for (namespace, _), reflector in self.at.items():
            if namespace in namespaces:
                result.update(objects(SECRET, reflector.items))
        return result

    async def run(self) -> None:
        """Watch the wanted Secrets until cancelled; errors of the API server never end this method."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._follow(group)
                await self._woken.wait()
                self._woken.clear()

    def _follow(self, group: asyncio.TaskGroup) -> None:
        """Begin the watches of newly wanted Secrets, and end the others."""
        for key in sorted(self.at.keys() - self._wanted):
            self._tasks.pop(key).cancel()
            self._on_changes(dict.fromkeys(objects(SECRET, self.at.pop(key).items)))
        for namespace, name in sorted(self._wanted - self.at.keys()):
            reflector = self._reflector(namespace=namespace, fields=f"metadata.name={name}")
            self.at[namespace, name] = reflector
            self._tasks[namespace, name] = group.create_task(
                reflector.run(partial(self._pass_changes, (namespace, name), reflector)),
                name=f"kubernetes watch of secret {name} in {namespace}",
            )

    def _pass_changes(
        self, key: Key, reflector: Reflector[str], changes: Mapping[Key, Item[str] | None]
    ) -> None:
        if self.at.get(key) is reflector:  # stopped during a batch otherwise
            self._on_changes(objects(SECRET, changes))
