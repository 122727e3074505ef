"""Command `python -m benchmarks.records`: records of several control planes in a real Kubernetes API.

Records of the size of a proxy's are created with several requests at a time. Two replicas then list and
follow all of them, and write: a constant number of compared writes each second, of random records, in turn.
Measured are the time of each write, the time until the other replica has the change, and the CPU time and
memory of the API server, of etcd and of the client. The client's CPU time is that of this process, which has
both replicas.

etcd does not wait for the disk here, so times of writes are lower limits; CPU times are not affected.
"""

import argparse
import asyncio
import contextlib
import gc
import os
import random
import statistics
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from rich.console import Console
from rich.table import Table

from benchmarks.figures.results import Values, machine, name, place, write
from benchmarks.processes.programs import BenchmarkError, end_with_sigterm
from benchmarks.processes.real_parts import are_had
from benchmarks.processes.usage import cpu_seconds, memory
from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Resource
from meshwright.records.contract import (
    Changes,
    RecordsError,
    RecordStore,
    ReplicaId,
    Revision,
    StoreUnavailableError,
)
from meshwright.records.key import Key, key_of
from meshwright.records.kubernetes.definition import DEFINITION, RECORDS
from meshwright.records.kubernetes.store import KubernetesRecords
from meshwright.records.kubernetes.times import Times
from tools.real_parts.cluster import RunningCluster, cluster
from tools.real_parts.parts import API_SERVER, ETCD

HOME: Final = "meshwright"
PREFIX: Final = key_of("proxies")
AT_ONCE: Final = 32
"""Creations at a time, as of many replicas that record joins."""
PATIENCE: Final = 120.0
"""Maximum seconds until all records are listed, or the last change has been followed."""
TIMES: Final = Times(read=30.0, write=30.0)
"""Time limits for a busy machine."""
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
LIVING: Final = "go_gc_heap_live_bytes "
"""Metric of the API server: bytes of objects that were alive at the last collection of garbage."""
PAGE: Final = 500
"""Records of which the bytes in a list are measured."""
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records", description=__doc__)
    parser.add_argument("--records", type=int, default=40_000, help="records [40000]")
    parser.add_argument("--size", type=int, default=700, help="bytes of a content [700]")
    parser.add_argument("--most", type=float, default=600.0, help="seconds for the creations at most [600]")
    parser.add_argument("--rate", type=int, default=200, help="compared writes per second [200]")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of compared writes [60]")
    parser.add_argument("--quick", action="store_true", help="use 500 records and 3 s of writes")
    parser.add_argument("--output", type=Path, help="[results/records.json, quick results/quick/...]")
    options = parser.parse_args(argv)
    if options.quick:
        options.records, options.seconds = 500, 3.0
    return options


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds of a phase, and wall-clock seconds."""

    wall: float
    client: float
    api: float
    etcd: float


@dataclass(slots=True)
class Meter:
    """Measurement of one phase, from the creation to `stop`."""

    measured: RunningCluster
    began: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        self.began = self._now()

    def stop(self) -> Usage:
        """Return the usage since the beginning."""
        return Usage(*(now - before for now, before in zip(self._now(), self.began, strict=True)))

    def _now(self) -> tuple[float, ...]:
        servers = (self.measured.api.process.pid, self.measured.etcd.process.pid)
        return (time.monotonic(), time.process_time(), *map(cpu_seconds, servers))


@dataclass(slots=True)
class Replica:
    """A replica: its client, the revisions that it has followed, and the time at which each content came."""

    store: RecordStore
    revisions: dict[Key, Revision] = field(default_factory=dict)
    heard: dict[int, float] = field(default_factory=dict)
    calls: int = 0

    def receive(self, changes: Changes) -> None:
        """Record changes."""
        now = time.monotonic()
        self.calls += 1
        for record in changes.records:
            self.revisions[record.key] = record.revision
            if self.calls > 1:
                self.heard[number_of(record.content)] = now


def content_of(number: int, size: int) -> bytes:
    """Return a content with a number, which compresses badly, like sealed content."""
    return f"{number} ".encode() + random.Random(number).randbytes(size // 2).hex().encode()[: size - 10]


def number_of(content: bytes) -> int:
    """Return the number of a content."""
    return int(content.partition(b" ")[0])


def key_of_proxy(number: int) -> Key:
    """Return the key of a proxy, of the usual length."""
    identifier = f"{random.Random(number).getrandbits(128):032x}"
    return key_of(*PREFIX.split("/"), f"namespace-{number % 50}", f"service-{number % 5000}", identifier)


@contextlib.asynccontextmanager
async def connected(running: RunningCluster, replica: str) -> AsyncIterator[KubernetesRecords]:
    """Open the client of a replica, with connections of its own."""
    async with Api(find_connection(running.kubeconfig, "")) as api:
        yield KubernetesRecords(api, HOME, ReplicaId(replica), lambda: datetime.now(UTC), TIMES)


async def prepare(running: RunningCluster) -> None:
    """Create the namespace and the definition of records, and wait until records are served."""
    async with Api(find_connection(running.kubeconfig, "")) as api:
        await api.create(NAMESPACES, None, {"metadata": {"name": HOME}})
        await api.create(DEFINITIONS, None, DEFINITION)
        await until_listed(api, HOME)


async def until_listed(api: Api, namespace: str) -> None:
    """Wait until the API server serves records, which takes it a moment after their definition."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            await api.list(RECORDS, namespace)
            return
        except ApiError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)


async def create(store: RecordStore, options: argparse.Namespace) -> int:
    """Create the records, for a limited time; return their number."""
    numbers: Iterator[int] = iter(range(options.records))
    deadline = time.monotonic() + options.most
    created = 0

    async def creator() -> None:
        nonlocal created
        for number in numbers:
            await store.write(key_of_proxy(number), content_of(number, options.size), None)
            created += 1
            if time.monotonic() > deadline:
                return

    await asyncio.gather(*(creator() for _ in range(AT_ONCE)))
    return created


@contextlib.asynccontextmanager
async def following(replica: Replica) -> AsyncIterator[None]:
    """Follow all records, from the first list on."""
    task = asyncio.create_task(replica.store.follow(PREFIX, replica.receive))
    try:
        await until(lambda: replica.calls > 0, "the first list")
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition; raise BenchmarkError after a time limit."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise BenchmarkError(f"{what} is missing after {PATIENCE:.0f} s")
        await asyncio.sleep(0.005)


@dataclass(slots=True)
class WriteTimes:
    """Times of compared writes, in seconds, and writes that failed."""

    writes: list[float] = field(default_factory=list)
    followed: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    late: int = 0
    failed: int = 0


async def write_all(replicas: Sequence[Replica], options: argparse.Namespace) -> WriteTimes:
    """Replace random records at the rate, by the replicas in turn, and wait until all have heard of all."""
    result = WriteTimes()
    keys = sorted(replicas[0].revisions)
    first, count = 10**9, int(options.rate * options.seconds)
    sent: dict[int, tuple[float, Replica]] = {}
    chosen = random.Random(7).sample(keys, len(keys))
    began = time.monotonic()

    async def one(number: int, writer: Replica, other: Replica) -> None:
        key = chosen[number % len(chosen)]
        start = time.monotonic()
        result.late += start - began - number / options.rate > 0.5
        try:
            if number % 20 == 0:
                await writer.store.read(key)
                result.reads.append(time.monotonic() - start)
                start = time.monotonic()
            sent[first + number] = (start, other)
            content = content_of(first + number, options.size)
            await writer.store.write(key, content, writer.revisions[key])
            result.writes.append(time.monotonic() - start)
        except (RecordsError, StoreUnavailableError):
            sent.pop(first + number, None)
            result.failed += 1

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number / options.rate - time.monotonic()))
            writer, other = replicas[number % 2], replicas[1 - number % 2]
            group.create_task(one(number, writer, other))
    await until(lambda: all(number in other.heard for number, (_, other) in sent.items()), "a change")
    result.followed = [other.heard[number] - start for number, (start, other) in sent.items()]
    return result


@dataclass(frozen=True, slots=True)
class ServerMemory:
    """Memory of the servers in MiB: resident, and of the API server also the part of living objects."""

    api: float
    living: float
    etcd: float

    @classmethod
    def of(cls, running: RunningCluster) -> Self:
        """Measure the memory now."""
        api, etcd = (memory(item.process.pid).resident for item in (running.api, running.etcd))
        lines = answer(running, "/metrics").decode().splitlines()
        [living] = (line.split()[1] for line in lines if line.startswith(LIVING))
        return cls(api, float(living) / 2**20, etcd)


def answer(running: RunningCluster, path: str) -> bytes:
    """Return the answer of the API server to the administrator."""
    with urllib.request.urlopen(running.server + path, context=running.tls(), timeout=60) as result:  # noqa: S310
        return bytes(result.read())


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that was measured; times in seconds, memory in MiB."""

    created: int
    creating: Usage
    listing: Usage
    list_memory: float
    second_memory: float
    list_bytes: float
    writing: Usage
    written: WriteTimes
    before: ServerMemory
    after: ServerMemory


async def measure(running: RunningCluster, options: argparse.Namespace, console: Console) -> Figures:
    """Measure creations, lists and compared writes."""
    await prepare(running)
    empty = ServerMemory.of(running)
    async with connected(running, "a") as first, connected(running, "b") as second:
        meter = Meter(running)
        created = await create(first, options)
        creating = meter.stop()
        console.log(f"{created} records created in {creating.wall:.1f} s")
        replicas = Replica(first), Replica(second)
        gc.collect()
        before, meter = memory(os.getpid()).resident, Meter(running)
        async with following(replicas[0]):
            listing, listed = meter.stop(), memory(os.getpid()).resident
            console.log(f"listed in {listing.wall:.1f} s")
            async with following(replicas[1]):
                both = memory(os.getpid()).resident
                meter = Meter(running)
                written = await write_all(replicas, options)
                writing = meter.stop()
    page = len(answer(running, f"{RECORDS.path(HOME)}?limit={PAGE}")) / min(PAGE, created)
    return Figures(
        created, creating, listing, listed - before, both - listed, page, writing, written, empty,
        ServerMemory.of(running),
    )  # fmt: skip


def quantile(values: Sequence[float], share: int) -> float:
    """Return a percentile in milliseconds."""
    return 1000 * statistics.quantiles(values, n=100)[share - 1]


def rows(figures: Figures) -> Iterator[tuple[str, float, str]]:
    """Yield a name, a value and a unit for each row of the table."""
    creating, listing, writing = figures.creating, figures.listing, figures.writing
    count, writes = figures.created, len(figures.written.writes)
    yield "records", count, ""
    yield "creations per second", count / creating.wall, "/s"
    for who in ("client", "api", "etcd"):
        yield f"CPU of a creation, {who}", 1000 * getattr(creating, who) / count, "ms"
    yield "first list", listing.wall, "s"
    for who in ("client", "api", "etcd"):
        yield f"CPU of a list, {who}", getattr(listing, who), "s"
    yield "bytes of a record in a list", figures.list_bytes, "B"
    yield "bytes of a list", figures.list_bytes * count / 2**20, "MiB"
    yield "memory of a follower", figures.list_memory, "MiB"
    yield "memory of another follower", figures.second_memory, "MiB"
    yield "compared writes per second", writes / writing.wall, "/s"
    yield "writes that failed", figures.written.failed, ""
    yield "writes that began late", figures.written.late, ""
    for who in ("client", "api", "etcd"):
        yield f"CPU of a compared write, {who}", 1000 * getattr(writing, who) / max(writes, 1), "ms"
        yield f"processors during the writes, {who}", getattr(writing, who) / writing.wall, ""
    for what in ("writes", "followed", "reads"):
        for share in (50, 99):
            yield f"{what}, p{share}", quantile(getattr(figures.written, what), share), "ms"
    before, after = figures.before, figures.after
    yield "memory of the API server, before", before.api, "MiB"
    yield "memory of the API server, after", after.api, "MiB"
    yield "living objects of the API server, added", after.living - before.living, "MiB"
    yield "memory of etcd, before", before.etcd, "MiB"
    yield "memory of etcd, after", after.etcd, "MiB"


def main() -> None:
    """Build missing parts, measure, print the table, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=120)
    if not are_had((ETCD, API_SERVER), console.log):
        return
    where = machine()
    with (
        tempfile.TemporaryDirectory(prefix="records-") as directory,
        cluster(Path(directory) / "cluster") as running,
    ):
        figures = asyncio.run(measure(running, options, console))
    table = Table("", "measured", title=f"records of {options.size} bytes in a Kubernetes API")
    values: Values = {}
    for what, value, unit in rows(figures):
        table.add_row(what, f"{value:,.2f} {unit}")
        values[name("records", what.replace(",", ""))] = value
    console.print(table)
    output = place("records", options.output, quick=options.quick)
    details = {"creating": asdict(figures.creating), "listing": asdict(figures.listing)}
    write(output, where, values, **details, writing=asdict(figures.writing))
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
