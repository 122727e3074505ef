"""One server in simulated time: real ledger, membership, leadership, balance and streams; a lent view."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from benchmarks.simulation.mesh import Pods, SimulatedMesh
from benchmarks.simulation.proxies import Proxy
from benchmarks.simulation.store import SimulatedRecords, Store
from benchmarks.simulation.streams import Streams
from certs.errors import StateError
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.progress import Progress, progress
from certs.ledger.records.ledger import RecordedLedger
from meshwright.controller.sharing.stream_balance import StreamBalance
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import UnreadableContentError
from meshwright.records.contract import Epoch, RecordsError, ReplicaId
from meshwright.replicas.leadership import Leadership
from meshwright.replicas.membership import Membership
from meshwright.replicas.state import ReplicaState

START: Final = datetime(2031, 1, 1, tzinfo=UTC)
PAUSE_SECONDS: Final = 0.1
"""Time between two writes of admissions, as in `meshwright.delivery.proxies.readiness`."""
QUIET_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 1.0
"""Times of a burst of changed endpoints, as the settings have them by default."""
SPREAD_SECONDS: Final = 20


class SimulatedLedger(RecordedLedger):
    """The ledger of servers, whose waiting methods are coroutines: simulated time has one thread."""

    async def join(self, entry: LedgerEntry) -> None:
        """Record a certificate; raise RecordsError."""
        await self._record(entry, None)

    async def admit_ready(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Stamp the certificates of ready proxies, and write all stamps; raise RecordsError."""
        for entry in self.entries_of_all(names):
            if entry.claimed_at is not None:
                self._entries.stamps.note(entry, Stamp.ADMITTED, StampDetail.shorten(now))
        await self._write_all()


def now() -> datetime:
    """Return the simulated date and time."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


class SimulatedServer:
    """One server, from its start to its end."""

    def __init__(self, name: str, store: Store, mesh: SimulatedMesh, counts: Counter[str]) -> None:
        loop = asyncio.get_running_loop()
        self.replica = ReplicaId(name)
        self.store = store
        self._mesh = mesh
        self.counts = counts
        records = SimulatedRecords(store, self.replica)
        self._records = records
        self.ledger = SimulatedLedger(records, self.replica, loop)
        self.membership = Membership(self.replica, ReplicaState(version="1"))
        self.leadership = Leadership(lambda epoch: self.membership.set_facts(epoch=epoch))
        self.streams = Streams(mesh, counts, self.pods)
        self.is_ready = self.is_stopping = False
        self._admitted: dict[int, Pods] = {}
        self._pods: dict[ProxyName, Proxy] = {}
        self._ready: dict[ProxyName, None] = {}
        self._woken = asyncio.Event()
        self._dirty: dict[int, None] = {}
        self._dirty_since = self._dirty_last = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._news: list[float] = []
        self.told: Counter[float] = Counter()
        """Servings of news: seconds from a proxy's first ACK until all proxies here are told, by tenths."""
        self.balance = StreamBalance(
            self.membership,
            lambda: (self.streams,),
            lambda: () if self.is_ready else ("first lists",),
            is_stopping=lambda: self.is_stopping,
            is_store_away=lambda: store.is_away,
            moved=lambda count: counts.update({"moved": count}),
            monotonic=loop.time,
        )

    async def start(self, pods: Iterable[Proxy]) -> None:
        """Follow the store, and be ready when all records are listed; `pods` are the Pods of the mesh now."""
        self._pods = {pod.name: pod for pod in pods}
        self._run(self.ledger.follow(self._hear))
        # Lists have no latency here, so all records are known after this pause.
        await asyncio.sleep(0.01)
        for name in self._pods:
            self._judge(name)
        self._dirty.clear()
        self._run(self._records.announce(self.membership.encoded, self.membership.hear))
        self._run(self._records.lead(self._term))
        self._run(self.balance.run())
        self._run(self._write_admissions())
        self.is_ready = True

    def kill(self) -> tuple[Proxy, ...]:
        """End at once; return the proxies that were connected."""
        self.is_ready = False
        for task in self._tasks:
            task.cancel()
        return self.streams.end_all()

    async def stop(self) -> None:
        """End in steps, as a server does after SIGTERM."""
        self.is_ready, self.is_stopping = False, True
        await asyncio.sleep(5.0)
        for second in range(SPREAD_SECONDS):
            count = -(-self.streams.streams // (SPREAD_SECONDS - second))
            self.streams.end_oldest(count, 0.0)
            await asyncio.sleep(1.0)
        self.kill()

    def add(self, pod: Proxy) -> None:
        """Take a new Pod of the mesh into the view."""
        self._pods[pod.name] = pod
        self._judge(pod.name)

    def drop(self, pod: Proxy) -> None:
        """Take a Pod out of the view."""
        if self._pods.pop(pod.name, None) is not None:
            self._set(pod, here=False)

    def pods(self, service: int) -> Pods:
        """Return the Pods of a service that get calls, as this server knows."""
        return self._admitted.get(service, frozenset())

    def ready_pods(self) -> set[int]:
        """Return the numbers of all Pods that get calls, as this server knows."""
        return {number for pods in self._admitted.values() for number in pods}

    async def let_in(self, proxy: Proxy) -> bool:
        """Authenticate a proxy, and begin its stream; return whether it is served."""
        if self.ledger.entry(proxy.serial) is None:
            # The proxy may have joined at another server a moment ago, and be faster than the record.
            self.counts["fetch"] += 1
            try:
                await self.ledger.fetch(proxy.name)
            except StateError:
                return False
            if self.ledger.entry(proxy.serial) is None:
                return False
        if not self.is_ready:
            return False
        self.ledger.claim(proxy.serial, now())
        self.streams.begin(proxy)
        if proxy.acked_at is None:
            proxy.acked_at = asyncio.get_running_loop().time()
            self._ready[proxy.name] = None
            self._woken.set()
        return True

    async def _write_admissions(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            ready, self._ready = self._ready, {}
            try:
                await self.ledger.admit_ready(ready, now())
            except (RecordsError, UnreadableContentError):
                # The store was away: the next turn writes these and the new ones together.
                self._ready = {**ready, **self._ready}
                await asyncio.sleep(1.0)
                self._woken.set()
            for name in ready:
                self._judge(name)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _term(self, epoch: Epoch) -> None:
        self.counts["term"] += 1
        self.leadership.begin(epoch)
        try:
            await asyncio.Event().wait()
        finally:
            self.leadership.end()

    def _hear(self, entries: tuple[LedgerEntry, ...]) -> None:
        if self.is_ready:
            for name in {entry.common_name: None for entry in entries}:
                self._judge(ProxyName.parse(name))

    def _judge(self, name: ProxyName) -> None:
        """Let the Pod of a proxy get calls, if the proxy is ready."""
        pod = self._pods.get(name)
        if pod is not None:
            self._set(pod, here=progress(self.ledger.entries_of(name)) is Progress.READY)

    def _set(self, pod: Proxy, *, here: bool) -> None:
        before = self.pods(pod.service)
        after = before | {pod.number} if here else before - {pod.number}
        if after == before:
            return
        self._admitted[pod.service] = after
        loop = asyncio.get_running_loop()
        self._dirty_last = loop.time()
        if not self._dirty:
            self._dirty_since = self._dirty_last
            loop.call_later(QUIET_SECONDS, self._look)
        self._dirty[pod.service] = None
        if here and pod.acked_at is not None and self.is_ready:
            self._news.append(pod.acked_at)

    def _look(self) -> None:
        """Make a wave if the changes have ended, or have lasted too long."""
        loop = asyncio.get_running_loop()
        due = min(self._dirty_last + QUIET_SECONDS, self._dirty_since + LONGEST_SECONDS)
        if self._dirty and loop.time() < due - 1e-6:
            loop.call_at(due, self._look)
        elif self._dirty:
            dirty, self._dirty = tuple(self._dirty), {}
            self.counts["wave"] += 1
            self.streams.push({caller for service in dirty for caller in self._mesh.callers(service)})
            self.told.update(round(loop.time() - at, 1) for at in self._news)
            self._news.clear()

    def _run(self, work: Coroutine[object, object, None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))
