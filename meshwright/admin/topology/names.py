"""Names of nodes and edges of the topology."""

from typing import Final

from meshwright.mesh.service import ServiceKey
from meshwright.traffic.statistics import CalledPort
from meshwright.traffic.traffic import Caller

OUTSIDE: Final = ""
"""Namespace of hosts outside the mesh, and of the sum of many destinations."""
Name = tuple[str, str]
"""Namespace and name."""
Between = tuple[Name, Name]
"""Caller and called service."""


def name_of(key: ServiceKey) -> Name:
    """Return the graph name (namespace, name) of a service."""
    return (str(key.namespace), str(key.name))


def caller_of(caller: Caller) -> Name:
    """Return the graph name of the reporting proxy's service, which the proxy's certificate proves."""
    return (caller.namespace, caller.service)


def called_of(called_port: CalledPort) -> Name:
    """Return the graph name of a called service as the traffic report gives the name."""
    return (called_port.namespace or OUTSIDE, called_port.service)
