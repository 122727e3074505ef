"""A proxy's configuration as the mesh describes it: services, routes and callers.

Envoy's form is in `decoding`. Each line has fields for programs and `text` for people, for example `inbound
8080: shop/buyer may send GET /books (TrafficTarget shop/buyers)`. All functions are pure.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from catalog.policy.values.destinations import Destination, ExternalDestination, ServiceDestination
from catalog.policy.values.inbound import EveryoneInTheMesh, InboundPort, OnlyRules
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.access import requests_of
from meshwright.admin.pages.proxies import edge_description as describe_edge
from meshwright.admin.pages.proxies import outside_description as describe_outside
from meshwright.admin.pages.proxies import route_lines
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch

EVERYBODY: Final = "every workload with a certificate of the mesh"


def listeners(policy: ProxyPolicy) -> list[Document]:
    """Return the listeners: ports of the workload and of its gateway, and services that it may call."""
    lines = [_inbound_listener(port) for port in policy.inbound]
    lines += [_outbound_listener(service) for service in policy.outbound]
    lines += describe_outside.listeners(policy.outside)
    lines += describe_edge.listeners(policy.edge)
    if policy.passthrough:
        lines.append(
            {"direction": "outbound", "text": "outbound connections to unknown destinations are allowed"}
        )
    return lines


def routes(policy: ProxyPolicy) -> list[Document]:
    """Describe, line by line, the admitted callers of each port, and the routes of services and gateways."""
    lines = [line for port in policy.inbound for line in _admission(port)]
    for service in policy.outbound:
        place: Document = {"direction": "outbound", "service": str(service.upstream), "port": service.port}
        lines += route_lines.lines(service.table, place, f"outbound {service.upstream}:{service.port}")
    lines += describe_outside.routes(policy.outside)
    return lines + describe_edge.routes(policy.edge)


def clusters(policy: ProxyPolicy) -> list[Document]:
    """Describe, line by line, the clusters: the application, and called services with their identities."""
    lines: list[Document] = [
        {
            "direction": "inbound",
            "port": port.port,
            "application": str(port.application),
            "text": f"inbound {port.port} goes to the application at {port.application}",
        }
        for port in policy.inbound
    ]
    return lines + [_cluster(destination) for destination in policy.destinations]


def endpoints(policy: ProxyPolicy) -> list[Document]:
    """Describe, line by line, the endpoints of each called service."""
    return [line for place in policy.service_destinations for line in _endpoints(place)]


def _inbound_listener(port: InboundPort) -> Document:
    services = [str(service) for service in port.services]
    where = str(port.listen) if port.listen is not None else f"port {port.port}"
    text = f"inbound {where}, {port.protocol.value}, for {_listed(services)}, to {port.application}"
    if port.access == OnlyRules():
        text += ": no caller is allowed"
    return {
        "direction": "inbound",
        "port": port.port,
        "protocol": port.protocol.value,
        "services": list(services),
        "listen": str(port.listen) if port.listen is not None else None,
        "application": str(port.application),
        "text": text,
    }


def _outbound_listener(service: OutboundService) -> Document:
    where = [
        f"{address}:{service.port}" if ":" not in address else f"[{address}]:{service.port}"
        for address in service.addresses
    ]
    where += map(str, service.listen)
    return {
        "direction": "outbound",
        "service": str(service.upstream),
        "port": service.port,
        "protocol": service.protocol.value,
        "addresses": list(where),
        "text": f"outbound {service.upstream}:{service.port}, {service.protocol.value}, at {_listed(where)}",
    }


def _admission(port: InboundPort) -> Iterator[Document]:
    def line(callers: Iterable[object], requests: Iterable[str] | None, by: ObjectKey | None) -> Document:
        who, what = [str(caller) for caller in callers], None if requests is None else list(requests)
        text = "everything" if what is None else _listed(what)
        message = "" if by is None else f" ({by})"
        target = None if by is None else by.path if by.kind == TRAFFIC_TARGET else str(by)
        return {
            "direction": "inbound",
            "port": port.port,
            "protocol": port.protocol.value,
            "callers": list(who),
            "requests": None if what is None else list(what),
            "target": target,
            "text": f"inbound {port.port}: {_listed(who)} may send {text}{message}"
            if who
            else f"inbound {port.port}: no caller is allowed",
        }

    match port.access:
        case EveryoneInTheMesh():
            yield line((EVERYBODY,), None, None)
        case OnlyRules(()):
            yield line((), None, None)
        case _:
            pass
    for rule in port.access.rules:
        yield line(rule.callers, _matches(rule.matches), rule.by)


def _cluster(place: Destination) -> Document:
    return _external(place) if isinstance(place, ExternalDestination) else _service(place)


def _external(place: ExternalDestination) -> Document:
    what = "HTTP" if place.is_http else "TCP"
    over = f", over TLS as {place.tls.server_name}" if place.tls is not None else ""
    return {
        "direction": "outbound",
        "host": str(place.host),
        "port": place.port,
        "http": place.is_http,
        "server_name": place.tls.server_name if place.tls is not None else None,
        "text": f"outbound {place.host} port {place.port}, {what}{over}, outside the mesh",
    }


def _service(place: ServiceDestination) -> Document:
    expected = [str(identity) for identity in place.identities]
    what = "HTTP" if place.is_http else "TCP"
    return {
        "direction": "outbound",
        "service": str(place.service),
        "target_port": place.target_port,
        "http": place.is_http,
        "identities": list(expected),
        "server_name": place.server_name,
        "endpoints": len(place.endpoints),
        "text": f"outbound {place.service} port {place.target_port}, {what}, answered by "
        f"{_listed(expected) if expected else 'no identity'}, {_counted(len(place.endpoints), 'endpoint')}",
    }


def _endpoints(place: ServiceDestination) -> Iterator[Document]:
    for item in place.endpoints:
        where = " or ".join(str(HostPort(at, item.port)) for at in (item.address, *item.other_addresses))
        locality = f", in {item.locality}" if item.locality else ""
        yield {
            "service": str(place.service),
            "target_port": place.target_port,
            "address": item.address,
            "port": item.port,
            "weight": item.weight,
            "locality": item.locality,
            "text": f"{place.service} port {place.target_port} at {where}, weight {item.weight}{locality}",
        }
    if not place.endpoints:
        yield {
            "service": str(place.service),
            "target_port": place.target_port,
            "text": f"{place.service} port {place.target_port} has no endpoints"
            if not place.as_called
            else f"{place.service} port {place.target_port} goes to the called address",
        }


def _matches(matches: tuple[HTTPMatch, ...] | None) -> list[str] | None:
    return None if matches is None else [requests_of(match) for match in matches]


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "nothing"
