"""A loop for connected proxies over a source in memory; time is a number, streams are watches."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from catalog.store.view import MeshSettings
from certs.state.pair_files import PairFiles
from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.ack_handling import Answers
from meshwright.delivery.certificates.certificates import IssuanceCounts, ServiceCertificates
from meshwright.delivery.loop import Loop, MeshState
from meshwright.delivery.mesh_sources import MeshSources, Paces
from meshwright.delivery.model import Model, Work
from meshwright.delivery.presence import ConnectionGracePeriod, Presence
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.self_check import Verification
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.snapshots.translation import translation
from meshwright.delivery.snapshots.wanted_groups import ConnectedGroups
from meshwright.delivery.timing.debounce import Pace
from meshwright.delivery.wave import Wave
from meshwright.mesh.names import TrustDomain
from meshwright.providers.sources import Sources
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.empty_resources import empty
from tests.meshes import values as a
from tests.meshes.sources import MemorySource
from tests.tools.own_authority import own_authority
from xds.cache import GroupKey, NodeKey, SnapshotCache, Watch
from xds.protocol.resources.snapshot import Snapshot

LINGERING = 300.0


class Plane:
    """Everything between a source and streams; each wave and each round of arrivals verifies itself."""

    def __init__(self, state: Path, now: datetime, *objects: object) -> None:
        self.source = MemorySource("cluster", a.objects(*objects))
        self.now, self.seconds = now, 0.0
        self.presence = Presence(ConnectionGracePeriod(LINGERING), lambda: self.seconds)
        self.cache = SnapshotCache(self.presence.attended)
        self.metrics = Metrics()
        self.told: list[Wave] = []
        self.states: list[MeshState] = []
        self.published: list[Mapping[NodeKey, GroupKey | None]] = []
        self.authority = own_authority(state, TrustDomain("cluster.local"), now)
        self.issued = 0
        self.certificates = ServiceCertificates(self.authority, PairFiles(state), self._issued, lambda: 0.0)
        self.gathering = MeshSources(Sources((self.source,)), Paces(Pace(0, 0), Pace(0, 0)), self.metrics)
        self.publishing = Publisher(self.cache, Quarantine(empty), self.metrics, self._told)
        self.answers = Answers(self.publishing, self.gathering.changed, lambda: now)
        translate, preview = (translation(EnvoyDriver(), secrets=item) for item in (True, False))
        self.loop = Loop(
            self.gathering,
            lambda: Model(translate, MeshSettings(), wanted=ConnectedGroups, preview=preview),
            self.certificates,
            self.publishing,
            clock=lambda: self.now,
            meter=self.metrics,
            on_state=self.states.append,
            presence=self.presence,
            verification=_Strict(self.metrics),
        )

    def _told(self, wave: Wave, step: Step, _: Mapping[GroupKey, Snapshot]) -> None:
        self.told.append(wave)
        self.published.append(step.members)

    def _issued(self, issuance_counts: IssuanceCounts) -> None:
        self.issued += issuance_counts.issued

    @property
    def model(self) -> Model:
        """The loop's current model."""
        assert self.loop.model is not None
        return self.loop.model

    @property
    def kept(self) -> list[str]:
        """The proxies with a published snapshot, sorted."""
        return sorted(self.publishing.published.members)

    def work(self) -> Work:
        """Return the work done so far."""
        return self.model.work()

    def open(self, name: str) -> Watch:
        """Open a stream of a workload's proxy."""
        return self.cache.watch(node(name), lambda: None)

    async def come(self, *names: str) -> list[Watch]:
        """Open streams of proxies, and serve them."""
        watches = [self.open(name) for name in names]
        await self.loop.attend()
        return watches

    async def leave(self, *watches: Watch, seconds: float = LINGERING) -> None:
        """Close streams, and let the loop attend to that after so many seconds."""
        for watch in watches:
            self.cache.unwatch(watch)
        self.seconds += seconds
        await self.loop.attend()

    async def change(self, after: Iterable[object], before: Iterable[object] = ()) -> None:
        """Replace the objects `before` by the objects `after`, and run a wave."""
        self.source.change({**dict.fromkeys(a.objects(*before)), **a.objects(*after)})
        await self.loop.wave()


class _Strict(Verification):
    def on_verified(self, differences: tuple[str, ...]) -> None:
        super().on_verified(differences)
        assert differences == ()


def node(name: str) -> NodeKey:
    """Return the node of a workload's proxy."""
    return NodeKey(f"{name}-uuid.{name}.default")
