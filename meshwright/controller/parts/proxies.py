"""The parts that sidecar drivers work with."""

from dataclasses import dataclass

from meshwright.controller.drivers import DriverPages, MeshDrivers
from meshwright.sidecars.contract.events import Broker


@dataclass(frozen=True, slots=True)
class ProxyParts:
    """The sidecar drivers, the pages that they show, and the events that they are told of."""

    drivers: MeshDrivers
    pages: DriverPages
    events: Broker


def join_proxies(drivers: MeshDrivers) -> ProxyParts:
    """Return the drivers without pages and events, which come when they start."""
    return ProxyParts(drivers, DriverPages(), Broker())
