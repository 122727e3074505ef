"""Assembly of the delivery parts into one record, and the tasks that keep them running.

`delivery` makes the parts and connects them; nothing runs yet. The controller starts the tasks that
`Delivery.works` yields, and gives `Delivery.cache` and `Delivery.observer` to the ADS server. The order in
which the parts are made is the order of their dependencies:

    presence, registry -> cache, history, quarantine, journal (_Records)
    sources -> MeshSources; _Records -> Publisher -> Answers, Loop -> MeshObserver

Published waves reach the records before the followers, because a follower such as a status page reads the
records. Read next: `loop` for a wave, `publisher` for its last step, `proxies/observer` for the way back.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from certs.ledger.contract import Ledger
from meshwright.delivery.ack_handling import Answers
from meshwright.delivery.certificates.certificates import ServiceCertificates
from meshwright.delivery.history.history import PushHistory
from meshwright.delivery.history.open_waves import OpenWaves
from meshwright.delivery.loop import Loop, MeshState
from meshwright.delivery.mesh_sources import MeshSources, Paces
from meshwright.delivery.meters import Meter
from meshwright.delivery.model import Model
from meshwright.delivery.presence import ConnectionGracePeriod, Presence
from meshwright.delivery.proxies.held_certificates import HeldCertificates
from meshwright.delivery.proxies.journal import Journal
from meshwright.delivery.proxies.observer import MeshObserver
from meshwright.delivery.proxies.readiness import EndpointReadiness
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.proxies.shared_identities import SharedIdentities
from meshwright.delivery.proxies.shown_certificates import ShownCertificates
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.acknowledged_resources import Acknowledged
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.delivery.self_check import Verification
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.wave import Wave
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import Tapped
from meshwright.mesh.values.picture import Picture
from meshwright.providers.sources import Sources
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.snapshot import Snapshot

NewQuarantine = Callable[[Callable[[NodeKey], Acknowledged], Callable[[NodeKey], bool]], Quarantine]
"""Constructor of a quarantine.

The first argument returns the record of acknowledged resources of a proxy, the second one whether the proxy
is connected.
"""


class Follower(Protocol):
    """Receiver of published waves, for example the writer of statuses.

    Both methods must be quick and must not raise.
    """

    def published(self, wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
        """Handle the publication of a wave or of a part of one.

        `replaced` are the former snapshots by group.
        """

    def changed(self) -> None:
        """Handle the end of a wave, or a change of the mesh's problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The parts between the sources of objects and the streams of proxies.

    The ADS server needs `cache` and `observer`. `followers` are notified of published waves, in their order.
    """

    certificates: ServiceCertificates
    cache: SnapshotCache
    registry: ProxyRegistry
    history: PushHistory
    journal: Journal
    readiness: EndpointReadiness
    quarantine: Quarantine
    gathering: MeshSources
    answers: Answers
    loop: Loop
    observer: MeshObserver
    sharing: SharedIdentities
    held_certificates: HeldCertificates
    shown_certificates: ShownCertificates
    followers: list[Follower] = field(default_factory=list)

    def works(
        self, ledger: Ledger, keep: Callable[[tuple[Verdict, ...]], None], clock: Callable[[], datetime]
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks that delivery needs while proxies are served.

        `keep` is called in a thread and writes verdicts to disk. For example: `("mesh loop", <coroutine>)`.
        """
        yield "mesh loop", self.loop.run()
        yield "presence", self.loop.attending()
        yield "journal", self.journal.run()
        yield "admissions", self.readiness.run(ledger, clock, self.gathering.changed)
        yield "problems", self.loop.linting.run()
        yield "renewals", self.certificates.renewing(clock, self.gathering.changed)
        yield "shared identities", self.sharing.watching(self.gathering.changed)
        yield "retries of rejected resources", self.answers.retrying()
        yield "verdicts", self.answers.keeping(keep)


def delivery(
    *,
    sources: Sources,
    paces: Paces,
    readiness: EndpointReadiness,
    certificates: ServiceCertificates,
    new_model: Callable[[], Model],
    new_quarantine: NewQuarantine,
    lingering: float,
    meter: Meter,
    clock: Callable[[], datetime],
    watched: Callable[[], Mapping[ServiceKey, Tapped]] = Picture,
    verify: bool = False,
    waves: OpenWaves | None = None,
) -> Delivery:
    """Make the parts and connect them.

    A proxy's resources are kept current until `lingering` seconds after its last stream has ended. `watched`
    returns the tapped requests by service. With `verify` each wave is compared with a computation from
    scratch. With `waves` each wave is followed until the proxies that it concerns have answered.
    """
    presence, registry = Presence(ConnectionGracePeriod(lingering)), ProxyRegistry(clock)
    # The records come first, because the publisher writes to them before any stream sends a response.
    records = _records(presence, registry, new_quarantine, meter, waves)
    gathering = MeshSources(sources, paces, meter, readiness.admissions, watched)
    announcer = _Announcer(records)
    publishing = Publisher(
        records.cache, records.quarantine, meter, announcer.published, waves, records.journal
    )
    answers = Answers(publishing, gathering.changed, clock)
    loop = Loop(
        gathering,
        new_model,
        certificates,
        publishing,
        clock=clock,
        meter=meter,
        on_state=partial(announcer.state_changed, answers),
        presence=presence,
        verification=Verification(meter) if verify else None,
        shared=records.sharing.problems,
    )
    return _delivery(records, announcer, gathering, answers, loop, certificates, readiness, meter)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    """State about proxies: snapshots, streams, pushes, rejections and shared identities."""

    cache: SnapshotCache
    registry: ProxyRegistry
    history: PushHistory
    quarantine: Quarantine
    sharing: SharedIdentities
    journal: Journal


def _records(
    presence: Presence,
    registry: ProxyRegistry,
    new_quarantine: NewQuarantine,
    meter: Meter,
    waves: OpenWaves | None,
) -> _Records:
    cache = SnapshotCache(presence.attended)
    history = PushHistory(cache, registry.find, waves)
    quarantine = new_quarantine(registry.acknowledged, registry.is_connected)
    return _Records(
        cache=cache,
        registry=registry,
        history=history,
        quarantine=quarantine,
        sharing=SharedIdentities(registry, quarantine),
        journal=Journal(history, quarantine, meter),
    )


class _Announcer:
    """Forwarder of published waves and new states: to the records, then to the followers, in order."""

    def __init__(self, records: _Records) -> None:
        self._records = records
        self.followers: list[Follower] = []

    def published(self, wave: Wave, step: Step, replaced: Mapping[GroupKey, Snapshot]) -> None:
        """Record a published wave, or a part of one, and notify the followers."""
        self._records.history.published(wave, step, replaced)
        for follower in self.followers:
            follower.published(wave, step, replaced)

    def state_changed(self, answers: Answers, state: MeshState) -> None:
        """Forget proxies without a workload and their verdicts, and notify the followers of a wave's end."""
        records = self._records
        records.quarantine.forget(records.registry.follow(state.proxies))
        # After `forget`, which may have removed verdicts.
        answers.judged()
        for follower in self.followers:
            follower.changed()


def _delivery(
    records: _Records,
    announcer: _Announcer,
    gathering: MeshSources,
    answers: Answers,
    loop: Loop,
    certificates: ServiceCertificates,
    readiness: EndpointReadiness,
    meter: Meter,
) -> Delivery:
    registry, history, journal = records.registry, records.history, records.journal
    return Delivery(
        certificates=certificates,
        cache=records.cache,
        registry=registry,
        history=history,
        journal=journal,
        readiness=readiness,
        quarantine=records.quarantine,
        gathering=gathering,
        answers=answers,
        loop=loop,
        observer=MeshObserver(registry, meter, history, journal, readiness, answers),
        sharing=records.sharing,
        held_certificates=HeldCertificates(records.cache.snapshot),
        shown_certificates=ShownCertificates(),
        followers=announcer.followers,
    )
