"""Parser of the listeners that a gateway's proxy was sent, from the admin interface. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import GATEWAY_CLUSTER, GATEWAY_METADATA

GATEWAY_PATH: Final = f"/config_dump?resource=dynamic_active_clusters&name_regex=^{GATEWAY_CLUSTER}$"
"""Path of the cluster with the names of the listeners; the answer of a sidecar is empty."""


@dataclass(frozen=True, slots=True)
class SentListener:
    """A listener of a gateway that Envoy was sent, and may have rejected."""

    name: str
    gateway: str
    place: HostPort

    @classmethod
    def from_name(cls, name: str, gateway: str) -> Self:
        """Return the listener of a name, for example `edge-listener|192.0.2.10|443`."""
        _, address, port = name.rsplit("|", 2)
        return cls(name, gateway, HostPort(address, int(port)))

    def __str__(self) -> str:
        return f"listener {self.place} of Gateway {self.gateway}"


def sent_listeners(dump: Mapping[str, object]) -> tuple[SentListener, ...] | None:
    """Parse the answer of GATEWAY_PATH; the result is None for a proxy that serves no gateway."""
    configs = dump.get("configs")
    for config in configs if isinstance(configs, list) else ():
        metadata = _at(config, "cluster", "metadata", "filter_metadata", GATEWAY_METADATA)
        if metadata is not None:
            names, gateway = _at(metadata, "listeners"), _at(metadata, "gateway")
            found = names if isinstance(names, list) else ()
            return tuple(SentListener.from_name(str(name), str(gateway)) for name in found)
    return None


def _at(value: object, *path: str) -> object:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value
