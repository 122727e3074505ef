"""Proxies that reject a TrafficSplit at one server, while the same proxies are connected to the others."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from meshwright.mesh.identity import ProxyName
from tests.feature.rejection.conftest import Sidecar
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.servers import Replica
from tests.meshes import texts
from tests.tools.deadline import until
from xds.protocol.resources.resource import ROUTE, ResourceName
from xds.stream_status import Variant

_POISON = b"split:shop/poison"
_CALLED = (ROUTE, ResourceName("rds-outbound.shop/apex|80"))


def is_poisoned(content: bytes) -> bool:
    """Return whether a resource has the TrafficSplit that proxies reject."""
    return _POISON in content


@dataclass
class TimedSidecar(Sidecar):
    """A stream that notes when it rejected something first, and when it lost the TrafficSplit."""

    rejected_at: float | None = None
    lost_at: float | None = None
    accepted_at: list[float] = field(default_factory=list)
    """Moments at which routes were accepted."""

    @property
    def has_split(self) -> bool:
        """Return whether an accepted resource has the TrafficSplit."""
        return any(map(is_poisoned, self.held.values()))

    @property
    def is_served(self) -> bool:
        """Return whether the route that may have the TrafficSplit was accepted."""
        return _CALLED in self.held

    async def _take(self, response: Any) -> None:
        arrived, had = time.monotonic(), self.has_split
        await super()._take(response)
        if self.rejected and self.rejected_at is None:
            self.rejected_at = arrived
        if response.type_url == ROUTE and not any(
            is_poisoned(item.resource.value) for item in response.resources
        ):
            self.accepted_at.append(arrived)
        if had and not self.has_split:
            self.lost_at = arrived


@dataclass(frozen=True)
class Delays:
    """Seconds until all other servers have withdrawn the TrafficSplit from a proxy.

    `rejected` counts from the first rejection, and `found` from the answer with which the search ended.
    """

    rejected: float
    found: float


@dataclass(frozen=True)
class PickyProxy:
    """A proxy with its certificate."""

    name: str
    folder: Path

    @contextlib.asynccontextmanager
    async def stream(self, replica: Replica, *, rejects: bool) -> AsyncIterator[TimedSidecar]:
        """Connect to a server for the block, and accept everything, or reject the TrafficSplit."""
        refuses: Callable[[bytes], bool] = is_poisoned if rejects else (lambda _: False)
        sidecar = TimedSidecar(self.name, Variant.DELTA, refuses)
        task = asyncio.create_task(self._run(sidecar, replica.ads), name=f"{self.name} at {replica.name}")
        try:
            yield sidecar
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
                await task

    async def _run(self, sidecar: Sidecar, address: str) -> None:
        ends = ("ca.pem", f"{self.name}.key", f"{self.name}.pem")
        roots, key, chain = ((self.folder / end).read_bytes() for end in ends)
        credentials = grpc.ssl_channel_credentials(roots, key, chain)
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.secure_channel(address, credentials, options) as channel:
            await sidecar.run(channel)


async def picky_proxies(mesh: Mesh, count: int) -> list[PickyProxy]:
    """Write workloads that call a service with a TrafficSplit, and issue their certificates."""
    names = [f"picky-{number}" for number in range(count)]
    documents = [
        *(texts.service("apex"), texts.service("backend"), texts.account("backend")),
        *(texts.workload("backend", "10.0.3.250"), texts.route_group("any", texts.match("any", ".*"))),
        texts.split("poison", "apex", ("backend", 1)),
    ]
    for number, name in enumerate(names, 1):
        documents += [texts.account(name), texts.workload(name, f"10.0.3.{number}"), texts.service(name)]
        documents.append(texts.target(f"calls-of-{name}", name, "backend", texts.http("any")))
    (mesh.manifests / "picky.yaml").write_text(texts.joined(*documents))
    made = []
    for name in names:
        proxy = ProxyName.parse(f"{name}.{name}.shop")
        folder = mesh.manifests.parent / name
        await mesh.replicas[0].issued(proxy, folder)
        made.append(PickyProxy(str(proxy), folder))
    return made


async def rejected_everywhere(proxy: PickyProxy, mesh: Mesh) -> Delays:
    """Let a proxy reject the TrafficSplit at the first server, and then move to the last one.

    The last server never sends the TrafficSplit to the proxy again.
    """
    here, *others = mesh.replicas
    async with contextlib.AsyncExitStack() as stack:
        accepting = [
            await stack.enter_async_context(proxy.stream(replica, rejects=False)) for replica in others
        ]
        for stream in accepting:
            await until(partial(_has_split, stream))
        rejecting = await stack.enter_async_context(proxy.stream(here, rejects=True))
        for stream in accepting:
            await until(partial(_has_lost_split, stream))
    assert rejecting.rejected_at is not None
    lost_at = max(stream.lost_at for stream in accepting if stream.lost_at is not None)
    found_at = max(at for at in rejecting.accepted_at if at <= lost_at)
    async with proxy.stream(others[-1], rejects=True) as moved:
        await until(lambda: moved.is_served)
        assert moved.rejected == []
        assert not any(is_poisoned(content) for _, content in moved.sent)
    return Delays(lost_at - rejecting.rejected_at, lost_at - found_at)


def _has_split(stream: TimedSidecar) -> bool:
    return stream.has_split


def _has_lost_split(stream: TimedSidecar) -> bool:
    return stream.lost_at is not None
