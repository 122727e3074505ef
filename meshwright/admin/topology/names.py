"""Names of nodes and edges of the topology."""

from typing import Final

from meshwright.mesh.service import ServiceKey
from meshwright.traffic.statistics import CalledPort
from meshwright.traffic.traffic import Caller

OUTSIDE: Final = ""
"""The namespace of what is outside the mesh, and of what stands for many."""
Name = tuple[str, str]
"""Namespace and name."""
Between = tuple[Name, Name]
"""Who calls, and who is called."""


def name_of(key: ServiceKey) -> Name:
    """Return the name of a service."""
    return (str(key.namespace), str(key.name))


def caller_of(found: Caller) -> Name:
    """Return the name of the service whose proxies counted: their certificates say it."""
    return (found.namespace, found.service)


def called_of(found: CalledPort) -> Name:
    """Return the name that a report has for what was called."""
    return (found.namespace or OUTSIDE, found.service)
