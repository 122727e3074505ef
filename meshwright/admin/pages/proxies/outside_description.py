"""A proxy's configuration for hosts outside the mesh, which Egresses allow, as the mesh describes it."""

from collections.abc import Iterable, Iterator
from typing import Final

from catalog.policy.values.outside import OutsideHost, OutsidePort, OutsideRange, OutsideRoute
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.access import requests_of

_LISTED: Final = 8
"""Maximum number of networks in a line."""


def listeners(ports: Iterable[OutsidePort]) -> list[Document]:
    """Describe, line by line, the traffic out of the mesh allowed at each port, by addresses."""
    return [_range(port, outside_range) for port in ports for outside_range in port.ranges]


def routes(ports: Iterable[OutsidePort]) -> list[Document]:
    """Describe, line by line, the allowed requests to each host outside the mesh, and their destination."""
    return [line for port in ports for outside_range in port.ranges for line in _routes(port, outside_range)]


def _range(port: OutsidePort, outside_range: OutsideRange) -> Document:
    passing = [f"TLS for {', '.join(outside_range.server_names)}"] if outside_range.server_names else []
    passing += (
        [f"requests for {', '.join(host.name for host in outside_range.hosts)}"]
        if outside_range.hosts
        else []
    )
    passing += ["every connection"] if outside_range.connections else []
    egresses = [str(key) for key in port.by]
    return {
        "direction": "outside",
        "port": port.port,
        "networks": list(outside_range.networks),
        "connections": outside_range.connections,
        "server_names": list(outside_range.server_names),
        "hosts": [host.name for host in outside_range.hosts],
        "egresses": list(egresses),
        "text": (
            f"outside the mesh {_where(port, outside_range)}: {'; '.join(passing)} "
            f"(Egress {', '.join(egresses)})"
        ),
    }


def _routes(port: OutsidePort, outside_range: OutsideRange) -> Iterator[Document]:
    for host in outside_range.hosts:
        called = f"outside the mesh {_where(port, outside_range)}, host {host.name}"
        for route in host.routes:
            yield _route(port, host, route, called)
        if not host.routes:
            yield {
                "direction": "outside",
                "port": port.port,
                "host": host.name,
                "requests": [],
                "text": f"{called}: no request is allowed",
            }


def _route(port: OutsidePort, host: OutsideHost, route: OutsideRoute, called: str) -> Document:
    requests = None if route.matches is None else [requests_of(match) for match in route.matches]
    to = "the original destination" if route.host is None else f"the addresses of {route.host} in DNS"
    return {
        "direction": "outside",
        "port": port.port,
        "host": host.name,
        "requests": None if requests is None else list(requests),
        "to": None if route.host is None else str(route.host),
        "text": f"{called}: {'everything' if requests is None else ', '.join(requests)} -> {to}",
    }


def _where(port: OutsidePort, outside_range: OutsideRange) -> str:
    """Return the place of a range with at most _LISTED networks, because every route of a host repeats it."""
    if not outside_range.networks:
        return f"port {port.port}"
    more = (
        f" and {len(outside_range.networks) - _LISTED} more" if len(outside_range.networks) > _LISTED else ""
    )
    return f"port {port.port} at {', '.join(outside_range.networks[:_LISTED])}{more}"
