"""Whose traffic a statistic of Envoy counts: names that the translation gave, read back beside the proxy.

In the names of statistics Envoy has an underscore wherever a cluster's has a colon.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

_OUTBOUND: Final = re.compile(r"(?:rds-)?outbound\.(?:(?P<namespace>[^/]+)/)?(?P<name>[^/|]+)\|(?P<port>\d+)")
_EGRESS: Final = re.compile(r"(?:rds-)?egress(?:\.(?P<port>\d+))?(?:\|.*)?")
_INBOUND: Final = re.compile(r"(?:rds-)?inbound\.(?P<port>\d+)")
_CLUSTER: Final = re.compile(r"(?P<namespace>[^/|]+)/(?P<name>[^/|]+)\|(?P<port>[^/|]+)(?:\|as-called)?")
_ROUTE: Final = re.compile(r"(?:(?P<namespace>[^/]+)/)?(?P<name>[^/]+?)\.route\.(?P<port>\d+)\|(?P<route>.+)")
_MATCH: Final = re.compile(r".+?\.vcluster\.(?P<port>\d+)\|(?P<match>.+)")
_LOCAL: Final = re.compile(r"[^/|]+/[^/|]+\|(?P<port>\d+)\|local")
_HOST: Final = re.compile(r"(?P<name>[^/|]+)_(?P<port>\d+)")
_NOT_SENT: Final = ("closed", "loop")


@dataclass(frozen=True, slots=True, order=True)
class StatTarget:
    """What is called: a service with its port, or a host outside, which has no namespace.

    The port of a backend is its target port, as the policy has it. What is not known is empty.
    """

    namespace: str
    service: str
    port: str


def called(prefix: str) -> StatTarget | None:
    """Return what the calls of a connection manager or TCP proxy are for; None where they come in.

    What leaves the mesh to whatever address the caller had is for `passthrough-outbound`, and what is let
    go nowhere for `blackhole-outbound`.
    """
    if found := _OUTBOUND.fullmatch(prefix):
        return StatTarget(found["namespace"] or "", _host(found["name"]), found["port"])
    if found := _EGRESS.fullmatch(prefix):
        return StatTarget("", "passthrough-outbound", found["port"] or "")
    return StatTarget("", "blackhole-outbound", "") if prefix in _NOT_SENT else None


def route(prefix: str) -> tuple[StatTarget, str] | None:
    """Return service and name of a route that is counted for itself, after its virtual host."""
    if (found := _ROUTE.fullmatch(prefix)) is None:
        return None
    return StatTarget(found["namespace"] or "", _host(found["name"]), found["port"]), found["route"]


def admitted_by(prefix: str) -> tuple[str, str] | None:
    """Return port and name of a match by which requests come in, after its virtual host and cluster."""
    found = _MATCH.fullmatch(prefix)
    return (found["port"], found["match"]) if found else None


def received_at(prefix: str) -> str | None:
    """Return the port at which a connection manager or TCP proxy takes calls; None where they go out."""
    found = _INBOUND.fullmatch(prefix)
    return found["port"] if found else None


def backend(cluster: str) -> StatTarget | None:
    """Return the backend that a cluster is, None for the application itself and for what helps a proxy."""
    if found := _CLUSTER.fullmatch(cluster):
        return StatTarget(found["namespace"], found["name"], found["port"])
    if found := _HOST.fullmatch(cluster):
        return StatTarget("", _host(found["name"]), found["port"])
    return None


def behind(cluster: str) -> str | None:
    """Return the port behind which a cluster has the application itself; None of all others."""
    found = _LOCAL.fullmatch(cluster)
    return found["port"] if found else None


def _host(name: str) -> str:
    """Give an address of IPv6 its colons again, and take its brackets."""
    try:
        return str(ip_address(name.strip("[]").replace("_", ":")))
    except ValueError:
        return name
