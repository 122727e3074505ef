"""Model of a mesh: the view of all objects, and the resources of the served groups, kept current together."""

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
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
"""Number of edits applied as one change; further edits are applied as further changes.

For example, the first read of 1000 objects is applied as about 16 changes.
"""

FORGOTTEN: Final = 500
"""Number of unneeded values dropped before streams get a turn."""


NOTHING_TAPPED: Final[Picture[ServiceKey, Tapped]] = Picture()


@dataclass(frozen=True, slots=True)
class Work:
    """Counts of the computations done so far (see `engine.graph.Graph`); `encoded` counts pieces."""

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
    """All inputs of the served snapshots: equal inputs give equal snapshots. `wanted` selects the groups."""

    known: Edits
    settings: MeshSettings
    certificates: Mapping[ServiceIdentity, ServiceCertificate]
    trust_bundle: bytes = field(repr=False)
    wanted: NewWanted = AllGroups


class Model:
    """The view of a mesh and everything derived from it; for one wave at a time, on the event loop.

    `merged`, `admissions` and `taps` are the inputs that have been applied completely; the sources may be
    newer. Methods that return an iterator yield `None` between slices and their result last, so the
    caller decides when streams get a turn.
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
        """Apply the current objects, admissions and taps; yield True at the end.

        More than ATOMIC edits are applied in parts with a pause after each. A reader of the view then sees
        some objects newer than others, each consistent with everything derived from it. Sources that are not
        transactional could have reported the changes in such parts themselves.
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
        """Apply the set of connected proxies, and drop values no longer needed; yield True at the end."""
        yield from self._forget()
        self.serving.wanted.attend(here)
        yield True

    def certificate_needs(self, touched: Iterable[ProxyGroup] = ()) -> Iterator[Needs | None]:
        """Yield the changed needs of identities at the end: their DNS names, or `None` for no need.

        Only identities of served groups need certificates. `touched` are the groups that may have been added
        or removed.
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
        """True if service certificates and CA certificates have been applied at least once."""
        return bool(self._trust_bundle)

    @property
    def trust_bundle(self) -> bytes:
        """The applied CA certificates as PEM, empty before the first ones."""
        return self._trust_bundle

    def certify(
        self,
        update: Update,
        in_force: Mapping[ServiceIdentity, ServiceCertificate],
        unsaid: Container[ServiceIdentity] = (),
    ) -> Iterator[bool | None]:
        """Apply changed certificates (the first time all certificates in force); yield True at the end.

        Changed certificates become causes of the next wave, except those of identities in `unsaid`.
        """
        changed = update.changed if self._trust_bundle else {**in_force, **update.changed}
        if changed or update.trust_bundle != self._trust_bundle:
            certificates = {
                identity: certificate for identity, certificate in changed.items() if identity not in unsaid
            }
            self.causes.note(
                certificate_causes(self.serving.rendering.certificates.values_unrecorded(), certificates)
            )
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

    def lint(self, now: datetime) -> Iterator[Sequence[Looked] | None]:
        """Search changed objects for problems; yield `None` after each step, and the results at the end."""
        result: list[Looked] = []
        yield from self._forget()
        self.linter.at(now)
        for item in self.linter.looks():
            result.append(item)
            yield None
        yield from self._forget()
        yield result

    def _forget(self) -> Iterator[None]:
        """Drop unneeded values in slices; after a change of the whole mesh they take more than one."""
        while self.view.graph.collect(FORGOTTEN):
            yield None

    def unplaced(self) -> Problems:
        """Return a problem for each workload that could not be assigned to a group or sidecar, sorted."""
        return tuple(
            Problem(
                code="workload-not-placed",
                severity=Severity.ERROR,
                origin=origin_of(self.view, name),
                key=name,
                expected=(
                    f"The index `{index.name}` could not be computed for this workload, so its proxy keeps "
                    f"its last configuration. The cause: {type(error).__name__}: {error}"
                ),
            )
            for index in (members(self.view), claimants(self.view))
            for key, error in sorted(index.failures().items())
            for name in (workload_object(self.view, key),)
        )

    def work(self) -> Work:
        """Return the counts of the computations done so far."""
        graph = self.view.graph
        return Work(graph.computed, graph.reused, graph.stopped, self.serving.rendering.encoded)

    def inputs(self) -> Inputs:
        """Return all inputs, for a computation from scratch."""
        certificates = dict(self.serving.rendering.certificates.values_unrecorded())
        return Inputs(
            self.view.known(),
            self.view.settings,
            certificates,
            self._trust_bundle,
            self.serving.wanted.anew,
        )
