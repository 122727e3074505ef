"""Following the sources: a view that is kept current, and what is wanted of it, kept current as well."""

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from catalog.lint.lint import DriverChecks, NoDriverChecks
from catalog.lint.problems import Linter, Looked
from catalog.relations.conflicts import claimants
from catalog.relations.groups import ProxyGroup, members
from catalog.relations.identities import dns_names
from catalog.store.edits import Edits
from catalog.store.objects import origin_of, workload_object
from catalog.store.settings import Admission
from catalog.store.view import MeshSettings, View
from certs.keys.material import ServiceCertificate
from meshwright.delivery.certificates.certificates import Needs, Update
from meshwright.delivery.presence import ExpectedSidecars
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.rendering import Translate
from meshwright.delivery.snapshots.wanted_groups import AllGroups, NewWanted
from meshwright.delivery.wave import Causes, causes, certificate_causes, trust_bundle_cause
from meshwright.engine.derived import ObservedValues
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import Tapped
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import MergedObjects

ATOMIC: Final = 64
"""How many edits are one change; more of them are several, one after the other."""

FORGOTTEN: Final = 500
"""How many values that nobody wants any more are forgotten at once."""


NOTHING_TAPPED: Final[Picture[ServiceKey, Tapped]] = Picture()


@dataclass(frozen=True, slots=True)
class Work:
    """What was done so far: see engine.graph.Graph; `encoded` counts pieces."""

    computed: int
    reused: int
    stopped: int
    encoded: int

    def __sub__(self, before: "Work") -> "Work":
        return Work(
            self.computed - before.computed,
            self.reused - before.reused,
            self.stopped - before.stopped,
            self.encoded - before.encoded,
        )


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that is served from: with equal inputs, equal snapshots; `wanted` is for whom."""

    known: Edits
    settings: MeshSettings
    certificates: Mapping[ServiceIdentity, ServiceCertificate]
    trust_bundle: bytes = field(repr=False)
    wanted: NewWanted = AllGroups


class Model:
    """The view of a mesh and what is served of it; for one wave at a time, on the event loop.

    `merged`, `admissions` and `taps` are what it has taken over whole: sources may have brought more since.
    """

    def __init__(
        self,
        translate: Translate,
        settings: MeshSettings,
        further: Callable[[], DriverChecks] = NoDriverChecks,
        wanted: NewWanted = AllGroups,
        preview: Translate | None = None,
    ) -> None:
        self.view = View(settings)
        self.linter = Linter(self.view, further)
        self.serving = GroupSnapshots(self.view, translate, wanted, preview)
        self._names: ObservedValues[ServiceIdentity, tuple[str, ...]] = ObservedValues(dns_names, self.view)
        self.merged = MergedObjects()
        self.admissions: Picture[ProxyName, Admission] = Picture()
        self.taps: Picture[ServiceKey, Tapped] = Picture()
        self._named: dict[ServiceIdentity, tuple[str, ...]] = {}
        self._certified: dict[ServiceIdentity, set[ProxyGroup]] = {}
        self._trust_bundle = b""
        self.causes = Causes()
        self.expected = ExpectedSidecars(self.view)

    def follow(
        self,
        merged: MergedObjects,
        admissions: Picture[ProxyName, Admission],
        taps: Picture[ServiceKey, Tapped] = NOTHING_TAPPED,
    ) -> Iterator[bool | None]:
        """Take over what the sources say now, who is admitted, and which requests are watched.

        More than ATOMIC edits are taken over in parts, with a pause after each. Who looks at the view then
        sees a mesh in which some objects are newer than others, each of them and all that follows from them
        whole: what sources that are not transactional might have said themselves.
        """
        edits = Edits(
            merged.since(self.merged), admissions.since(self.admissions), taps=taps.since(self.taps)
        )
        if edits:
            yield None
            yield from self._forget()
            for part in edits.parts(ATOMIC):
                self.causes.note(causes(self.view, part))
                self.view.apply(part)
                yield None
        self.merged, self.admissions, self.taps = merged, admissions, taps
        yield True

    def attend(self, here: Picture[ProxyName, ProxyName]) -> Iterator[bool | None]:
        """Take over which proxies are here to be served; what is wanted no more is forgotten in parts."""
        yield from self._forget()
        self.serving.wanted.attend(here)
        yield True

    def certificate_needs(self, touched: Iterable[ProxyGroup] = ()) -> Iterator[Needs | None]:
        """Yield in the end the identities whose need changed: their DNS names, None for no need.

        Certificates are for those who are served: `touched` are the groups that may have come or gone.
        """
        needs: dict[ServiceIdentity, tuple[str, ...] | None] = {}
        for group in filter(self.serving.is_touched, touched):
            self._certify_group(group, needs)
            yield None
        for identity in self._names.take_changed():
            names = self._names.value(identity)
            if names != self._named.get(identity):
                self._named[identity] = needs[identity] = names
            yield None
        yield needs

    def _certify_group(self, group: ProxyGroup, needs: dict[ServiceIdentity, tuple[str, ...] | None]) -> None:
        identity = group.identity
        having = self._certified.setdefault(identity, set())
        if self.serving.wants(group):
            having.add(group)
            self._names.add(identity)
            return
        having.discard(group)
        if not having:
            del self._certified[identity]
            self._names.discard(identity)
            if self._named.pop(identity, None) is not None:
                needs[identity] = None

    @property
    def certified(self) -> bool:
        """Say whether certificates have ever been taken over."""
        return bool(self._trust_bundle)

    def certify(
        self,
        update: Update,
        in_force: Mapping[ServiceIdentity, ServiceCertificate],
        unsaid: Container[ServiceIdentity] = (),
    ) -> Iterator[bool | None]:
        """Take over certificates: those that changed, the first time all that are in force.

        They are causes of the next wave, but for those `unsaid`.
        """
        changed = update.changed if self._trust_bundle else {**in_force, **update.changed}
        if changed or update.trust_bundle != self._trust_bundle:
            said = {identity: each for identity, each in changed.items() if identity not in unsaid}
            self.causes.note(certificate_causes(self.serving.rendering.certificates.held(), said))
            if update.trust_bundle != self._trust_bundle:
                domain = self.view.settings.trust_domain
                self.causes.note((trust_bundle_cause(domain, first_ever=not self._trust_bundle),))
            self._trust_bundle = update.trust_bundle
            left = iter(changed.items())
            while part := dict(itertools.islice(left, ATOMIC)):
                self.serving.rendering.certify(part, update.trust_bundle)
                yield None
            self.serving.rendering.certify({}, update.trust_bundle)
        yield True

    def lint(self) -> Iterator[Sequence[Looked] | None]:
        """Look for problems where something changed; yield in the end what is wrong there now."""
        found: list[Looked] = []
        for each in self.linter.looks():
            found.append(each)
            yield None
        yield from self._forget()
        yield found

    def _forget(self) -> Iterator[None]:
        """Forget what nobody wants any more: after a change of everything it is more than one slice."""
        while self.view.graph.collect(FORGOTTEN):
            yield None

    def unplaced(self) -> Problems:
        """Return the workloads for which an index of the view could not be computed, sorted."""
        return tuple(
            Problem(
                code="workload-not-placed",
                severity=Severity.ERROR,
                origin=origin_of(self.view, name),
                key=name,
                expected=f"{index.name}: {type(error).__name__}: {error}; its proxy keeps what it has",
            )
            for index in (members(self.view), claimants(self.view))
            for key, error in sorted(index.failures().items())
            for name in (workload_object(self.view, key),)
        )

    def work(self) -> Work:
        """Return what was done so far."""
        graph = self.view.graph
        return Work(graph.computed, graph.reused, graph.stopped, self.serving.rendering.encoded)

    def inputs(self) -> Inputs:
        """Return everything that is served from, for whoever computes it again."""
        certificates = dict(self.serving.rendering.certificates.held())
        return Inputs(
            self.view.known(),
            self.view.settings,
            certificates,
            self._trust_bundle,
            self.serving.wanted.anew,
        )
