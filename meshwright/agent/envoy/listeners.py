"""Parser of Envoy's accepted listeners, from the admin interface. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.names import IpAddress

LISTENERS_PATH: Final = "/config_dump?resource=dynamic_listeners"
"""Path of the listeners with filter chains; an intercepting listener serves every port."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A filter chain with its destinations: a port (None: any) and addresses (empty: any)."""

    name: str
    port: int | None = None
    addresses: tuple[IpAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener that Envoy uses; `address` is None for a socket without an Internet address."""

    name: str
    address: IpAddress | None
    port: int | None
    chains: tuple[Chain, ...] = ()


def listeners(dump: Mapping[str, object]) -> tuple[Listener, ...]:
    """Parse the answer of LISTENERS_PATH; listeners that Envoy does not use yet are left out."""
    states = (_object(config.get("active_state")) for config in _objects(dump.get("configs")))
    return tuple(_listener(_object(state.get("listener"))) for state in states if state)


def _listener(result: Mapping[str, object]) -> Listener:
    address = _object(_object(result.get("address")).get("socket_address"))
    host = address.get("address")
    return Listener(
        str(result.get("name", "")),
        IpAddress(host) if isinstance(host, str) else None,
        _port(address.get("port_value")),
        tuple(_chain(item) for item in _objects(result.get("filter_chains"))),
    )


def _chain(result: Mapping[str, object]) -> Chain:
    match = _object(result.get("filter_chain_match"))
    return Chain(str(result.get("name", "")), _port(match.get("destination_port")), tuple(_addresses(match)))


def _addresses(match: Mapping[str, object]) -> Iterator[IpAddress]:
    for item in _objects(match.get("prefix_ranges")):
        if isinstance(prefix := item.get("address_prefix"), str):
            yield IpAddress(prefix)


def _port(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
