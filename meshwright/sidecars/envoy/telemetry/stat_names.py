"""Parser of the names of Envoy's statistics, which come from the names of resources.

In names of statistics Envoy replaces each colon of a cluster's name by an underscore.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

_OUTBOUND: Final = re.compile(r"(?:rds-)?outbound\.(?:(?P<namespace>[^/]+)/)?(?P<name>[^/|]+)\|(?P<port>\d+)")
_EGRESS: Final = re.compile(r"(?:rds-)?egress(?:\.(?P<port>\d+))?(?:\|.*)?")
_EDGE: Final = re.compile(r"(?:rds-)?edge\.(?P<port>\d+)(?:\|(?P<listener>.+))?")
_EDGE_HOST: Final = re.compile(r"edge\|(?P<listener>[^|]+)\|.+")
_INBOUND: Final = re.compile(r"(?:rds-)?inbound\.(?P<port>\d+)")
_CLUSTER: Final = re.compile(
    r"(?P<namespace>[^/|]+)/(?P<name>[^/|]+)\|(?P<port>[^/|]+)(?:\|as-called|\|http[12])?"
)
_ROUTE: Final = re.compile(r"(?:(?P<namespace>[^/]+)/)?(?P<name>[^/]+?)\.route\.(?P<port>\d+)\|(?P<route>.+)")
_MATCH: Final = re.compile(r".+?\.vcluster\.(?P<port>\d+)\|(?P<match>.+)")
_LOCAL: Final = re.compile(r"[^/|]+/[^/|]+\|(?P<port>\d+)\|local")
_HOST: Final = re.compile(r"(?P<name>[^/|]+)_(?P<port>\d+)")
_NOT_SENT: Final = ("closed", "loop")


@dataclass(frozen=True, slots=True, order=True)
class StatTarget:
    """The target of calls: a service with its port, or a host outside of the mesh, with an empty namespace.

    For the clients of a gateway the target is the listener, for example `listener books.example`. The port of
    a backend is its target port, as in the policy. Unknown parts are empty.
    """

    namespace: str
    service: str
    port: str


def called(prefix: str) -> StatTarget | None:
    """Return the target of a connection manager or TCP proxy for outbound calls; None for inbound ones.

    A gateway's calls are outbound ones, and their target is the listener that took the request.

    Egress to any address counts for `passthrough-outbound`, and closed calls for `blackhole-outbound`.
    """
    if match := _OUTBOUND.fullmatch(prefix):
        return StatTarget(match["namespace"] or "", _host(match["name"]), match["port"])
    if match := _EDGE.fullmatch(prefix):
        return _listener(match["listener"], match["port"])
    if match := _EGRESS.fullmatch(prefix):
        return StatTarget("", "passthrough-outbound", match["port"] or "")
    return StatTarget("", "blackhole-outbound", "") if prefix in _NOT_SENT else None


def route(prefix: str) -> tuple[StatTarget, str] | None:
    """Return service and name of a separately counted route, from the name after the virtual host."""
    if (match := _ROUTE.fullmatch(prefix)) is None:
        return None
    if edge := _EDGE_HOST.fullmatch(match["name"]):
        return _listener(edge["listener"], match["port"]), match["route"]
    return StatTarget(match["namespace"] or "", _host(match["name"]), match["port"]), match["route"]


def admitted_by(prefix: str) -> tuple[str, str] | None:
    """Return port and name of a counted match, from the name after the virtual host and virtual cluster."""
    match = _MATCH.fullmatch(prefix)
    return (match["port"], match["match"]) if match else None


def received_at(prefix: str) -> str | None:
    """Return the port of a connection manager or TCP proxy for inbound calls; None for outbound ones."""
    match = _INBOUND.fullmatch(prefix)
    return match["port"] if match else None


def backend(cluster: str) -> StatTarget | None:
    """Return the backend of a cluster.

    None for the application itself and for clusters of helper services.
    """
    if match := _CLUSTER.fullmatch(cluster):
        return StatTarget(match["namespace"], match["name"], match["port"])
    if match := _HOST.fullmatch(cluster):
        return StatTarget("", _host(match["name"]), match["port"])
    return None


def behind(cluster: str) -> str | None:
    """Return the inbound port of a cluster that belongs to the application; None for any other cluster."""
    match = _LOCAL.fullmatch(cluster)
    return match["port"] if match else None


def _listener(hostname: str | None, port: str) -> StatTarget:
    """Return the listeners at a gateway's port; those in plain text have one name, because they are one."""
    return StatTarget("", f"listener {hostname or '*'}", port)


def _host(name: str) -> str:
    """Return a host in a statistic's name; an IPv6 address gets colons: `[fd00__1]` gives `fd00::1`."""
    try:
        return str(ip_address(name.strip("[]").replace("_", ":")))
    except ValueError:
        return name
