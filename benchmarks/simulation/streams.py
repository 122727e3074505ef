"""Streams of one simulated server: the real state machine of the incremental variant, without a network."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.simulation.mesh import Pods, SimulatedMesh
from benchmarks.simulation.proxies import Proxy
from benchmarks.synthetic.resources import service
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import DeltaRequest, Response


@dataclass(slots=True)
class OpenStream:
    """One stream, and the time at which it began."""

    proxy: Proxy
    began: float
    stream: DeltaStream


class Streams:
    """The open streams of one server; implements the driver contract's MovableStreams.

    `counts` has pushes, resources and bytes, with `first` for a proxy without resources, `moved` for a proxy
    with resources from another server, and `news` for changes. For example, `moved bytes` are the bytes
    of the endpoints, because a proxy gets only its endpoints again.
    """

    def __init__(self, mesh: SimulatedMesh, counts: Counter[str], pods: Callable[[int], Pods]) -> None:
        self._mesh = mesh
        self._counts = counts
        self._pods = pods
        self._open: dict[int, OpenStream] = {}
        self._groups: dict[int, dict[int, OpenStream]] = {}
        self.left: Callable[[Proxy], None] = lambda _: None

    @property
    def streams(self) -> int:
        """Return the number of open streams."""
        return len(self._open)

    def begin(self, proxy: Proxy) -> None:
        """Serve a proxy, which names the versions of its resources."""
        called = tuple(ResourceName(service(number)) for number in self._mesh.called(proxy.service))
        snapshot, stream = self._snapshot(proxy.service), DeltaStream()
        opened = OpenStream(proxy, asyncio.get_running_loop().time(), stream)
        self._open[proxy.number] = opened
        self._groups.setdefault(proxy.service, {})[proxy.number] = opened
        kind = "first" if proxy.held is None else "moved"
        self._answer(kind, stream, stream.on_snapshot(snapshot))
        for type_url, names in ((CLUSTER, ()), (ENDPOINT, called), (LISTENER, ()), (ROUTE, called)):
            request = DeltaRequest(
                type_url, subscribe=names, initial_versions=_versions(proxy.held, type_url)
            )
            self._answer(kind, stream, stream.on_request(request))
        proxy.held = snapshot

    def push(self, groups: Iterable[int]) -> None:
        """Send the present snapshot to the proxies of these services."""
        for group in sorted(groups):
            for opened in tuple(self._groups.get(group, {}).values()):
                snapshot = self._snapshot(group)
                if opened.proxy.held is not snapshot:
                    self._answer("news", opened.stream, opened.stream.on_snapshot(snapshot))
                    opened.proxy.held = snapshot

    def end_oldest(self, count: int, youngest_seconds: float) -> int:
        """End this many streams, the oldest first; return how many have ended."""
        before, ended = asyncio.get_running_loop().time() - youngest_seconds, 0
        # A dict keeps the order of insertion, so the oldest streams are first.
        for opened in tuple(self._open.values()):
            if ended == count or opened.began > before:
                break
            self.end(opened.proxy)
            self.left(opened.proxy)
            ended += 1
        return ended

    def end(self, proxy: Proxy) -> bool:
        """End the stream of a proxy; return whether it had one."""
        self._groups.get(proxy.service, {}).pop(proxy.number, None)
        return self._open.pop(proxy.number, None) is not None

    def end_all(self) -> tuple[Proxy, ...]:
        """End all streams; return their proxies."""
        proxies = tuple(opened.proxy for opened in self._open.values())
        self._open.clear()
        self._groups.clear()
        return proxies

    def _snapshot(self, group: int) -> Snapshot:
        return self._mesh.snapshot(group, tuple(self._pods(number) for number in self._mesh.called(group)))

    def _answer(self, kind: str, stream: DeltaStream, responses: Iterable[Response]) -> None:
        """Count responses, and acknowledge each, as a proxy does at once."""
        due, counts = list(responses), self._counts
        while due:
            response = due.pop(0)
            counts[f"{kind} pushes"] += 1
            counts[f"{kind} resources"] += len(response.resources) + len(response.removed)
            counts[f"{kind} bytes"] += sum(len(resource.body) for resource in response.resources)
            request = DeltaRequest(response.type_url, nonce=response.nonce)
            if stream.acknowledged(request) is None:
                due += stream.on_request(request)


def _versions(held: Snapshot | None, type_url: TypeUrl) -> dict[ResourceName, Version]:
    if held is None:
        return {}
    return {resource.name: resource.version for resource in held.ordered(type_url)}
