"""Following the sources: a view that is kept current, and what is wanted of it, kept current as well."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from catalog.edits import Known, difference
from catalog.identities import dns_names
from catalog.problems import problems
from catalog.view import MeshSettings, View
from certs.material import ServiceCertificate
from controller.issuing import Update
from controller.serving import Serving, Translate
from incremental.derived import Pins
from mesh.endpoints import Inventory
from mesh.identity import ProxyName, ServiceIdentity
from mesh.objects import ObjectKey, Origin, Problem, Severity, Sourced
from providers.merge import merge

SLICE_SECONDS: Final = 0.005
"""How long a wave holds the event loop at a time, but for a single group that takes longer."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a wave is computed from, taken at one moment."""

    objects: Mapping[ObjectKey, Sourced]
    inventories: tuple[tuple[str, Inventory], ...]
    problems: tuple[Problem, ...]
    settings: MeshSettings


@dataclass(frozen=True, slots=True)
class _Merged:
    """Several inventories, the one they come to, and where they contradict each other."""

    of: tuple[tuple[str, Inventory], ...]
    inventory: Inventory
    problems: tuple[Problem, ...]


class Following:
    """The view of a mesh and what is served of it; for one wave at a time, on the event loop."""

    def __init__(self, translate: Translate, settings: MeshSettings) -> None:
        self.view = View(settings)
        self.serving = Serving(self.view, translate)
        self._names: Pins[ServiceIdentity, tuple[str, ...]] = Pins(dns_names, self.view)
        self._merged: _Merged | None = None
        self._known = self.view.known()
        self._named: dict[ServiceIdentity, tuple[str, ...]] = {}
        self._trust_bundle = b""
        self.view.with_sidecar.watch()

    def follow(self, inputs: Inputs) -> tuple[Problem, ...]:
        """Take over what the sources say now; return where they contradict each other."""
        merged = self._merged
        if merged is None or not _same(merged.of, inputs.inventories):
            self._merged = merged = _merged(inputs.inventories)
        known = Known.of(inputs.objects, merged.inventory)
        if edits := difference(self._known, known):
            self.view.apply(edits)
        self._known = known
        return merged.problems

    def certificate_needs(self) -> Mapping[ServiceIdentity, tuple[str, ...] | None]:
        """Return the identities whose need for a certificate changed: DNS names, None for no need."""
        needs: dict[ServiceIdentity, tuple[str, ...] | None] = {}
        for identity in self.view.with_sidecar.take_changed():
            if identity in self.view.with_sidecar:
                self._names.add(identity)
            else:
                self._names.discard(identity)
                self._named.pop(identity, None)
                needs[identity] = None
        for identity in self._names.take_touched():
            names = self._names.value(identity)
            if names != self._named.get(identity):
                self._named[identity] = needs[identity] = names
        return needs

    def certify(self, update: Update, in_force: Mapping[ServiceIdentity, ServiceCertificate]) -> None:
        """Take over certificates: those that changed, the first time all that are in force."""
        changed = update.changed if self._trust_bundle else {**in_force, **update.changed}
        if changed or update.trust_bundle != self._trust_bundle:
            self._trust_bundle = update.trust_bundle
            self.serving.certify(changed, update.trust_bundle)

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong between objects; that this cannot be said is a problem like others.

        Looks at everything, so it is for a thread of its own: a change that comes meanwhile may be seen in
        part, and is a reason to ask again.
        """
        try:
            return problems(self.view)
        except Exception as error:  # noqa: BLE001 - whatever it is, what is served stands
            return (Problem("not-checked", Severity.ERROR, Origin("catalog"), None, "", "", f"{error}"),)

    def proxies(self) -> tuple[ProxyName, ...]:
        """Return the proxies that should be here, sorted."""
        names = (workload.proxy_name for workload in self.view.workloads_by_uuid.values())
        return tuple(sorted(name for name in names if name is not None))

    def inputs(self) -> tuple[Known, MeshSettings, Mapping[ServiceIdentity, ServiceCertificate], bytes]:
        """Return everything that is served from, for whoever computes it again."""
        certificates = dict(self.serving.certificates.held())
        return self.view.known(), self.view.settings, certificates, self._trust_bundle


async def in_slices(steps: Iterator[T | None]) -> T:
    """Run a computation that yields None now and then and its result last; do not hold the event loop."""
    began = time.perf_counter()
    for step in steps:
        if step is not None:
            return step
        if time.perf_counter() - began > SLICE_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()
    raise AssertionError("a computation ended without a result")


def _merged(inventories: tuple[tuple[str, Inventory], ...]) -> _Merged:
    if len(inventories) == 1:  # nobody to contradict it
        return _Merged(inventories, inventories[0][1], ())
    return _Merged(inventories, *merge(inventories))


def _same(one: tuple[tuple[str, Inventory], ...], other: tuple[tuple[str, Inventory], ...]) -> bool:
    """Say whether these are the very same inventories, without looking into them."""
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(a[0] == b[0] and a[1] is b[1] for a, b in pairs)
