"""Parts for serving proxies: the sidecar drivers, their debug pages, and the broker of events."""

from dataclasses import dataclass

from meshwright.controller.drivers import DriverPages, MeshDrivers
from meshwright.sidecars.contract.events import Broker


@dataclass(frozen=True, slots=True)
class ProxyParts:
    """The sidecar drivers, their debug pages, and the broker of their events."""

    drivers: MeshDrivers
    pages: DriverPages
    events: Broker


def join_proxies(drivers: MeshDrivers) -> ProxyParts:
    """Return the parts for serving proxies. The drivers add debug pages when they start."""
    return ProxyParts(drivers, DriverPages(), Broker())
