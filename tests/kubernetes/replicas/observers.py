"""Proxies that show what servers send: real Envoys, and observers that keep what they hold over streams."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.feature.serve.delta_sidecar import Sidecar
from tests.golden.envoys import RunningEnvoy
from xds.protocol.resources.resource import TypeUrl

AGAIN_SECONDS: Final = 0.5
"""Longest time in seconds until an observer dials the next server, as an Envoy does."""

_VERSIONED: Final = ("cluster", "listener", "route_config", "secret", "endpoint_config")


@dataclass(frozen=True, slots=True)
class Change:
    """A resource that a proxy was sent in another version than the one it held, or that was removed."""

    proxy: str
    type_url: str
    name: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return, for example, `Cluster shop/w1 of w3: 1f -> 2a`."""
        kind = self.type_url.rpartition(".")[2]
        return f"{kind} {self.name} of {self.proxy}: {self.before or 'none'} -> {self.after or 'removed'}"


class _Recording(Sidecar):
    """A stream's sidecar that reports each response to its observer."""

    observer: "Observer"

    def has_all(self) -> bool:
        """Return whether every resource that was requested by name is held, from this stream or before."""
        held = self.observer.held
        return all(names <= held.get(type_url, {}).keys() for type_url, names in self._asked.items())

    async def _take(self, response: discovery_pb2.DeltaDiscoveryResponse) -> None:
        self.observer.take(response)
        await super()._take(response)
        for addresses in self.endpoints.values():
            for address in addresses - self.observer.arrived.keys():
                self.observer.arrived[address] = time.monotonic()


@dataclass
class Observer:
    """A proxy without Envoy, which goes from server to server with what it holds.

    `changes` are counted from the first complete configuration on, see `settle`.
    """

    name: str
    folder: Path
    addresses: Sequence[str]
    held: dict[TypeUrl, dict[str, str]] = field(default_factory=dict)
    endpoints: dict[str, set[str]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    repeated: int = 0
    """Number of resources that arrived in the version that was held."""
    streams: list[tuple[float, str]] = field(default_factory=list)
    """Moment of the first response on each stream, by the monotonic clock, and the server's address."""
    refusals: list[tuple[float, str, grpc.StatusCode]] = field(default_factory=list)
    """Moment, address and status of each stream that has ended with an error."""
    arrived: dict[str, float] = field(default_factory=dict)
    """Moment at which each address of an endpoint has arrived for the first time."""
    stream: _Recording | None = None
    _address: str = ""
    _begins: bool = True

    async def run(self) -> None:
        """Connect to one server after the other, until cancelled."""
        number = random.randrange(len(self.addresses))  # noqa: S311 - no secret
        while True:
            self._address = self.addresses[number % len(self.addresses)]
            self.stream = _Recording(self.name, {kind: dict(names) for kind, names in self.held.items()})
            self.stream.observer, self.stream.endpoints = self, self.endpoints
            self._begins = True
            try:
                await self.stream.run(self._address, self.folder)
            except grpc.aio.AioRpcError as error:
                self.refusals.append((time.monotonic(), self._address, error.code()))
            except asyncio.InvalidStateError:
                # From grpc.aio, if the stream ends while a request is written. Its status is not known.
                self.refusals.append((time.monotonic(), self._address, grpc.StatusCode.UNKNOWN))
            self.stream = None
            number += 1
            await asyncio.sleep(random.uniform(0, AGAIN_SECONDS))  # noqa: S311 - no secret

    @property
    def is_served(self) -> bool:
        """Return whether a response has arrived on the present stream."""
        return self.stream is not None and not self._begins and self.stream.has_all()

    @property
    def address(self) -> str:
        """Return the address of the server of the present stream, or an empty text."""
        return self._address if self.is_served else ""

    def is_refused_by(self, addresses: set[str], since: float = 0.0) -> bool:
        """Return whether all these servers have refused the proxy since a moment."""
        return addresses <= {
            address
            for moment, address, code in self.refusals
            if code is grpc.StatusCode.PERMISSION_DENIED and moment >= since
        }

    def take(self, response: discovery_pb2.DeltaDiscoveryResponse) -> None:
        """Note the resources of a response."""
        if self._begins:
            self.streams.append((time.monotonic(), self._address))
            self._begins = False
        held = self.held.setdefault(TypeUrl(response.type_url), {})
        for resource in response.resources:
            before = held.get(resource.name, "")
            if before == resource.version:
                self.repeated += 1
            else:
                self.changes.append(
                    Change(self.name, response.type_url, resource.name, before, resource.version)
                )
            held[resource.name] = resource.version
        for name in response.removed_resources:
            if before := held.pop(name, ""):
                self.changes.append(Change(self.name, response.type_url, name, before, ""))


@contextlib.contextmanager
def running(observers: Sequence[Observer]) -> Iterator[None]:
    """Run observers while the block runs."""
    tasks = [asyncio.create_task(item.run(), name=f"observer {item.name}") for item in observers]
    try:
        yield
        for task in tasks:
            assert not task.done(), task.exception()
    finally:
        for task in tasks:
            task.cancel()


@dataclass
class RealProxy:
    """A real Envoy and its admin interface."""

    name: str
    running: RunningEnvoy

    async def stats(self, pattern: str) -> dict[str, int]:
        """Return the statistics with a name that has this pattern."""
        text = await self.running.text(f"/stats?filter={pattern}&format=json") or "{}"
        return {item["name"]: item["value"] for item in json.loads(text).get("stats", ()) if "value" in item}

    async def is_connected(self) -> bool:
        """Return whether a stream to a server is open."""
        name = "control_plane.connected_state"
        return (await self.stats(f"^{name}$")).get(name) == 1

    async def versions(self) -> Mapping[str, str]:
        """Return the version of each resource in force, by type and name."""
        dump = json.loads(await self.running.text("/config_dump?include_eds") or "{}")
        return dict(sorted(_versions(dump)))


def _versions(dump: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section in dump.get("configs", ()):
        for items in section.values():
            for item in items if isinstance(items, list) else ():
                state = item.get("active_state", item)
                kind = next((kind for kind in _VERSIONED if kind in state), None)
                if kind is not None and "version_info" in state:
                    resource = state[kind]
                    name = item.get("name") or resource.get("name") or resource.get("cluster_name")
                    yield f"{kind} {name}", state["version_info"]
                elif kind == "endpoint_config":
                    yield f"{kind} {state[kind].get('cluster_name')}", json.dumps(_addresses(state[kind]))


def _addresses(assignment: Mapping[str, Any]) -> list[str]:
    return sorted(
        json.dumps(endpoint["endpoint"]["address"], sort_keys=True)
        for group in assignment.get("endpoints", ())
        for endpoint in group.get("lb_endpoints", ())
    )
