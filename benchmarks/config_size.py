"""Command `python -m benchmarks.config_size`: size of a proxy's configuration, and its growth with the mesh.

Only one part of a mesh grows at a time. The size is that of the encoded resources, without the few bytes of
framing per resource. The exit status is 1 if the configuration grows faster than linearly.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.any_pb2 import Any
from rich.console import Console
from rich.table import Table

from benchmarks.meshes.config_meshes import CLIENT, SERVER, Size, sent, view
from benchmarks.processes.programs import HERE
from meshwright.mesh.service import Protocol
from protos.envoy.config.listener.v3 import listener_pb2
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, TypeUrl

SHORT: Final[Mapping[TypeUrl, str]] = {LISTENER: "LDS", ROUTE: "RDS", CLUSTER: "CDS", ENDPOINT: "EDS"}
STEPS: Final = (10, 20, 40, 80, 160)
TOLERANCE: Final = 1.1
"""Allowed factor between the last and the first unit, because names and numbers get more digits."""
GROWS: Final[Mapping[str, Callable[[Size, int], Size]]] = {
    "services": lambda size, number: replace(size, services=number),
    "others": lambda size, number: replace(size, others=number),
    "matches": lambda size, number: replace(size, matches=number),
    "ruled": lambda size, number: replace(size, matches=number, ruled=number),
    "clients": lambda size, number: replace(size, clients=number),
    "endpoints": lambda size, number: replace(size, endpoints=number),
    "ports": lambda size, number: replace(size, ports=number),
}


@dataclass(frozen=True, slots=True)
class ProxyConfigSize:
    """Size of the xDS configuration of one proxy: resources and bytes by type."""

    value: int
    resources: Mapping[str, int]
    bytes: Mapping[str, int]

    @property
    def total(self) -> int:
        """Return the bytes of all resources of the configuration."""
        return sum(self.bytes.values())


@dataclass(frozen=True, slots=True)
class Series:
    """Configuration of one proxy while one part of the mesh grows, in three steps at least."""

    proxy: str
    protocol: str
    grows: str
    found: tuple[ProxyConfigSize, ...]

    @property
    def per_unit(self) -> tuple[float, float]:
        """Return the bytes per further unit at the first and at the last step."""
        ends = self.found[:2], self.found[-2:]
        first, last = ((b.total - a.total) / (b.value - a.value) for a, b in ends)
        return first, last

    @property
    def is_linear(self) -> bool:
        """Return whether the last added unit costs at most TOLERANCE times the bytes of the first."""
        first, last = self.per_unit
        # A negative first unit times the factor would be a stricter bound than the unit itself.
        return last <= max(first, 0.0) * TOLERANCE


def measured(size: Size, proxy: str, value: int) -> ProxyConfigSize:
    """Return the size of a proxy's xDS configuration in a mesh of this size."""
    counts, total = Counter[str](), Counter[str]()
    for resource in sent(view(size), proxy):
        counts[SHORT[resource.type_url]] += 1
        total[SHORT[resource.type_url]] += len(resource.body)
    return ProxyConfigSize(value, dict(sorted(counts.items())), dict(sorted(total.items())))


@dataclass(frozen=True, slots=True)
class Growth:
    """A series to measure: the proxy, the growing part (a key of `GROWS`), and the mesh at the start."""

    proxy: str
    grows: str
    size: Size

    @property
    def shown_proxy(self) -> str:
        """Return the name of the proxy in the table, for example `client, permissive`."""
        return self.size.client if self.proxy == CLIENT else self.proxy

    def measured(self, steps: Sequence[int] = STEPS) -> Series:
        """Measure the size of the proxy's configuration at each step of the growth."""
        sizes = tuple(measured(GROWS[self.grows](self.size, step), self.proxy, step) for step in steps)
        return Series(self.shown_proxy, self.size.protocol.value, self.grows, sizes)


def all_growths() -> Iterator[Growth]:
    """Yield a series for each part of a mesh with a possible effect on a proxy's configuration."""
    http, tcp = Size(), Size(protocol=Protocol.TCP)
    # gRPC uses the filters of HTTP, so two series are enough for gRPC.
    for size in (http, tcp):
        for grows in ("services", "others", "endpoints", "ports"):
            yield Growth(CLIENT, grows, size)
    yield Growth(CLIENT, "services", Size(protocol=Protocol.GRPC))
    yield Growth(CLIENT, "ruled", http)
    for narrowed in (False, True):
        yield Growth(CLIENT, "others", Size(services=5, permissive=True, narrowed=narrowed))
    for grows in ("matches", "clients", "ports"):
        yield Growth(SERVER, grows, http)
    for grows in ("clients", "ports"):
        yield Growth(SERVER, grows, tcp)
    yield Growth(SERVER, "ports", Size(protocol=Protocol.GRPC))


@dataclass(frozen=True, slots=True)
class Listener:
    """Contents of a listener: filters by name, and the bytes of parts repeated in every filter chain."""

    proxy: str
    name: str
    chains: int
    listener_filters: Mapping[str, int]
    filters: Mapping[str, int]
    bytes: int
    tls_bytes: int
    access_log_bytes: int


def listeners(proxy: str, size: Size) -> Iterator[Listener]:
    """Count the filters and bytes in each listener of a proxy."""
    for resource in sent(view(size), proxy):
        if resource.type_url != LISTENER:
            continue
        message = listener_pb2.Listener.FromString(Any.FromString(resource.body).value)
        chains = [*message.filter_chains]
        filters = [item for chain in chains for item in chain.filters]
        configs = [json_format.MessageToDict(item)["typedConfig"] for item in filters]
        within = [http_filter["name"] for config in configs for http_filter in config.get("httpFilters", ())]
        yield Listener(
            proxy,
            message.name,
            len(chains),
            dict(Counter(listener_filter.name for listener_filter in message.listener_filters)),
            dict(Counter([*(item.name for item in filters), *within])),
            len(resource.body),
            sum(filter_chain.transport_socket.ByteSize() for filter_chain in chains),
            sum(_log_size(item.typed_config) for item in filters),
        )


def _log_size(config: Any) -> int:
    kind = descriptor_pool.Default().FindMessageTypeByName(config.TypeName())
    message = message_factory.GetMessageClass(kind).FromString(config.value)
    return sum(item.ByteSize() for item in getattr(message, "access_log", ()))


def _growth(result: list[Series]) -> Table:
    table = Table("proxy", "protocol", "grows", "from-to", "resources", "bytes by type", "bytes", "a unit")
    for each in result:
        first, last = each.found[0], each.found[-1]
        table.add_row(
            each.proxy,
            each.protocol,
            each.grows,
            f"{first.value}-{last.value}",
            ", ".join(f"{name} {count}" for name, count in last.resources.items()),
            ", ".join(f"{name} {count:,}" for name, count in last.bytes.items()),
            f"{first.total:,} -> {last.total:,}",
            f"{each.per_unit[0]:.0f} -> {each.per_unit[1]:.0f}" + ("" if each.is_linear else " NOT LINEAR"),
        )
    return table


def _contents(result: list[Listener]) -> Table:
    table = Table("proxy", "listener", "chains", "listener filters", "filters", "bytes", "TLS", "access logs")
    for listener in result:
        table.add_row(
            listener.proxy,
            listener.name,
            str(listener.chains),
            "\n".join(f"{count} {name}" for name, count in listener.listener_filters.items()),
            "\n".join(f"{count} {name}" for name, count in listener.filters.items()),
            f"{listener.bytes:,}",
            f"{listener.tls_bytes:,}",
            f"{listener.access_log_bytes:,}",
        )
    return table


def main() -> int:
    """Measure, print the tables, and write the results; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.config_size", description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "config_size.json")
    arguments = parser.parse_args()
    grown = [growth.measured() for growth in all_growths()]
    shapes = (Size(services=10, ports=2), Size(services=10, ports=2, protocol=Protocol.TCP))
    held = [listener for size in shapes for proxy in (CLIENT, SERVER) for listener in listeners(proxy, size)]
    console = Console(width=190)
    console.print(_growth(grown), _contents(held))
    result = {
        "growth": [
            asdict(series) | {"per_unit": series.per_unit, "is_linear": series.is_linear} for series in grown
        ],
        "listeners": [asdict(listener) for listener in held],
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"written to {arguments.output}")
    return int(not all(series.is_linear for series in grown))


if __name__ == "__main__":
    sys.exit(main())
