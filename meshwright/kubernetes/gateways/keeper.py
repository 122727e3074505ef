"""Keeper of the objects that run gateways: applies them, and removes those of gateways of other controllers.

The API server removes the objects of a deleted Gateway, which owns them. Only the leading server writes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.store.gateway import gateway_classes, gateways
from catalog.store.view import View
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.wave import Wave
from meshwright.kube.api import Api
from meshwright.kube.builtin import CONFIG_MAPS, DEPLOYMENTS, SERVICES
from meshwright.kube.errors import ApiError, KubeError, Reason
from meshwright.kube.resource import Resource
from meshwright.kubernetes.gateways.addresses import ServiceAddresses, requested_addresses
from meshwright.kubernetes.gateways.infrastructure import Document, Home, infrastructure, object_name
from meshwright.kubernetes.gateways.parameters import ParametersError, read_parameters
from meshwright.mesh.gateway.gateways import Gateway, Listener, ObjectReference
from meshwright.mesh.kinds import CONFIG_MAP, GATEWAY, SERVICE
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.annotations import HOME
from xds.cache import GroupKey
from xds.protocol.resources.snapshot import Snapshot

MANAGER: Final = "meshwright-gateways"
"""Field manager of the objects; fields that others set stay as they are."""

LOOK_SECONDS: Final = 60.0
"""Seconds between two looks at ConfigMaps of parameters, and at objects that somebody has changed."""

AGAIN_SECONDS: Final = 5.0
"""Seconds after a failed request."""

_RESOURCES: Final[Mapping[str, Resource]] = {
    "ServiceAccount": Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    "Deployment": DEPLOYMENTS,
    SERVICE.name: SERVICES,
    "PodDisruptionBudget": Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
}

_log = structlog.get_logger("gateways.keeper")


@dataclass(frozen=True, slots=True)
class _AppliedObjects:
    """The objects of a gateway as they were applied last, at a monotonic time in seconds.

    `addresses` are those that were requested for the Service.
    """

    documents: tuple[Document, ...]
    addresses: tuple[str, ...]
    at: float


class GatewayObjects:
    """Keeper of the Deployments, Services and other objects of all gateways in a cluster.

    `view` returns the mesh, None before the first wave. `leads` returns whether this server writes.
    """

    def __init__(
        self,
        api: Api,
        view: Callable[[], View | None],
        home: Home,
        leads: Callable[[], bool],
    ) -> None:
        self._api, self._view, self._home, self._leads = api, view, home, leads
        self._services = ServiceAddresses(api, MANAGER)
        self._applied: dict[PolicyKey, _AppliedObjects] = {}
        self._errors: dict[PolicyKey, str] = {}
        self._names: dict[PolicyKey, str] | None = None
        self._changed = asyncio.Event()

    def published(self, wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
        """Do nothing: the objects do not depend on what proxies are served."""

    def changed(self) -> None:
        """Schedule a look, because objects of the mesh may have changed."""
        self._changed.set()

    def remarks(self) -> tuple[str, ...]:
        """Return a sentence for each gateway whose objects could not be applied, for the health page."""
        return tuple(
            f"objects of Gateway {key} cannot be applied: {self._errors[key]}" for key in sorted(self._errors)
        )

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the keeper's task with its name; it runs as long as the server."""
        yield "gateway objects", self._keeping()

    async def _keeping(self) -> None:
        while True:
            is_read = True
            if self._leads():
                try:
                    await self._look()
                except KubeError as error:
                    _log.warning("objects of gateways cannot be read", error=str(error))
                    is_read = False
            else:
                self._applied, self._errors, self._names = {}, {}, None
            await self._something(LOOK_SECONDS if is_read and not self._errors else AGAIN_SECONDS)

    async def _something(self, seconds: float) -> None:
        """Wait for a change of the mesh, or for `seconds` at most."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    async def _look(self) -> None:
        """Apply what differs, and remove the objects of gateways that are not served here any more."""
        if (view := self._view()) is None:
            return
        names = self._names = await self._listed() if self._names is None else self._names
        served = {key: found for key in gateways(view) if (found := served_gateway(view, key)) is not None}
        # Without a UID the gateway is from a file, and somebody else runs its proxies.
        here = {key: gateway for key, gateway in sorted(served.items()) if gateway.uid}
        for key, gateway in here.items():
            names[key] = object_name(gateway)
            of_class = gateway_classes(view)[gateway.class_name].parameters
            await self._attempt(key, self._keep(gateway, of_class, _of_sets(view, key)))
        for key in sorted(names.keys() - here.keys()):
            await self._attempt(key, self._remove(key, names))
        self._errors = {key: error for key, error in self._errors.items() if key in names or key in here}

    async def _attempt(self, key: PolicyKey, work: Coroutine[object, object, None]) -> None:
        """Do one gateway's work. A failure is logged once, and concerns no other gateway."""
        try:
            await work
        except (KubeError, ParametersError) as error:
            if self._errors.get(key) != str(error):
                _log.warning("objects of a gateway cannot be applied", gateway=str(key), error=str(error))
            self._errors[key] = str(error)
        else:
            self._errors.pop(key, None)

    async def _keep(
        self, gateway: Gateway, of_class: ObjectReference | None, of_sets: Iterable[Listener]
    ) -> None:
        key, own = gateway.key, gateway.infrastructure.parameters
        data = {**await self._data(of_class, key.namespace), **await self._data(own, key.namespace)}
        parameters, addresses = read_parameters(data), requested_addresses(gateway)
        documents = infrastructure(gateway, parameters, self._home, of_sets)
        before, now = self._applied.get(key), asyncio.get_running_loop().time()
        is_known = before is not None and (before.documents, before.addresses) == (documents, addresses)
        if before is not None and is_known and now < before.at + LOOK_SECONDS:
            return
        for document in documents:
            if document["kind"] == SERVICE.name:
                await self._services.apply(document, addresses, parameters)
            else:
                await self._apply(document)
        for kind in _kinds(() if before is None else before.documents) - _kinds(documents):
            await self._delete(kind, key.namespace, object_name(gateway))
        if not is_known:
            _log.info("objects of a gateway applied", gateway=str(key), objects=sorted(_kinds(documents)))
        self._applied[key] = _AppliedObjects(documents, addresses, now)

    async def _data(self, reference: ObjectReference | None, namespace: Namespace) -> Mapping[str, Any]:
        """Return the data of a ConfigMap with parameters; empty without a reference."""
        if reference is None:
            return {}
        if reference.kind != CONFIG_MAP:
            raise ParametersError(f"parametersRef is a {reference.kind.full}: must be a ConfigMap")
        home = reference.namespace or namespace
        try:
            raw = await self._api.get(CONFIG_MAPS, home, reference.name)
        except ApiError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
            raise ParametersError(
                f"ConfigMap {home}/{reference.name} of parametersRef does not exist"
            ) from None
        return raw.get("data") or {}

    async def _apply(self, document: Document) -> None:
        resource, metadata = _RESOURCES[document["kind"]], document["metadata"]
        await self._api.apply(resource, metadata["namespace"], metadata["name"], document, manager=MANAGER)

    async def _listed(self) -> dict[PolicyKey, str]:
        """Return the gateways with a Deployment of this control plane, with the names of their objects."""
        listed = await self._api.list(DEPLOYMENTS, labels=f"{HOME}={self._home.namespace}")
        return {
            PolicyKey(Namespace(str(metadata.get("namespace"))), str(owner.get("name"))): str(
                metadata["name"]
            )
            for metadata in (raw.get("metadata") or {} for raw in listed["items"])
            for owner in metadata.get("ownerReferences") or ()
            if owner.get("kind") == GATEWAY.name
        }

    async def _remove(self, key: PolicyKey, names: dict[PolicyKey, str]) -> None:
        """Delete the objects of a gateway that is deleted, or is of another controller now."""
        self._applied.pop(key, None)
        for kind in _RESOURCES:
            await self._delete(kind, key.namespace, names[key])
        del names[key]  # only now, so that a removal that fails is repeated

    async def _delete(self, kind: str, namespace: str, name: str) -> None:
        try:
            await self._api.delete(_RESOURCES[kind], namespace, name)
        except ApiError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise


def _of_sets(view: View, key: PolicyKey) -> list[Listener]:
    """Return the accepted listeners of a gateway's ListenerSets."""
    verdicts = listener_verdicts(view, key)
    return [item.listener for item in verdicts if item.listener_set is not None and item.accepted]


def _kinds(documents: tuple[Document, ...]) -> set[str]:
    return {document["kind"] for document in documents}
