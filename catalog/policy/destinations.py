"""Destinations: the places that routes lead to, who may answer there, and at which endpoints.

Endpoints change far more often than anything else. They are apart from the rest of a destination, so that
whoever looks at that alone is not concerned by them.
"""

from collections.abc import Iterable
from dataclasses import replace

from catalog.policy.outbound import answering, ready_endpoints
from catalog.policy.proxy import DestinationEndpoint, OutboundService, ServiceDestination
from catalog.relations.permissive import asked_for
from catalog.store.view import View
from engine.derived import derived
from mesh.hashing import Shared
from mesh.identity import ServiceIdentity
from mesh.service import ServiceKey, ServicePort


def destinations(
    view: View, client: ServiceIdentity | None, services: Iterable[OutboundService]
) -> Shared[ServiceDestination]:
    """Return the services' ports that the routes of these name, sorted; without endpoints.

    Identities are there before their endpoints are admitted, so that admission changes no cluster.
    """
    named: dict[tuple[ServiceKey, str, bool], bool] = {}
    for service in services:
        for route in service.routes:
            for backend in route.backends:
                if isinstance(backend.upstream, ServiceKey):
                    place = (backend.upstream, backend.target_port, backend.as_called)
                    named[place] = named.get(place, False) or service.protocol.is_http
    return Shared(
        _open_to_all(view, key, target_port, is_http, as_called)
        if (asked := asked_for(view, client, key)) is None
        else _destination(view, asked, key, target_port, is_http, as_called)
        for (key, target_port, as_called), is_http in sorted(named.items())
    )


@derived
def _open_to_all(
    view: View, key: ServiceKey, target_port: str, is_http: bool, as_called: bool
) -> ServiceDestination:
    return _destination(view, None, key, target_port, is_http, as_called)


def _destination(
    view: View,
    client: ServiceIdentity | None,
    key: ServiceKey,
    target_port: str,
    is_http: bool,
    as_called: bool,
) -> ServiceDestination:
    return ServiceDestination(
        service=key,
        target_port=target_port,
        is_http=is_http,
        server_name=key.fqdn(view.settings.cluster_domain),
        identities=_identities(view, client, key, target_port),
        endpoints=(),
        as_called=as_called,
        caller=client,
    )


@derived
def destination_endpoints(
    view: View, client: ServiceIdentity | None, key: ServiceKey, target_port: str
) -> tuple[DestinationEndpoint, ...]:
    """Return the endpoints that take traffic and that a client may call at a target port, sorted."""
    found = {
        DestinationEndpoint(each.address, each.port, each.locality, each.weight)
        for port in _ports(view, key, target_port)
        for each in ready_endpoints(view, client, key, port)
    }
    return tuple(sorted(found))


def with_endpoints(view: View, found: ServiceDestination) -> ServiceDestination:
    """Return a destination with its endpoints."""
    return replace(found, endpoints=endpoints_of(view, found))


def endpoints_of(view: View, found: ServiceDestination) -> tuple[DestinationEndpoint, ...]:
    """Return a destination's endpoints; there are none where the one that was called answers."""
    if found.as_called:
        return ()
    return destination_endpoints(view, found.caller, found.service, found.target_port)


def _identities(
    view: View, client: ServiceIdentity | None, key: ServiceKey, target_port: str
) -> tuple[ServiceIdentity, ...]:
    ports = _ports(view, key, target_port)
    return tuple(sorted({each for port in ports for each in answering(view, client, key, port)}))


def _ports(view: View, key: ServiceKey, target_port: str) -> tuple[ServicePort, ...]:
    return tuple(each for each in view.services[key].ports if str(each.target_port) == target_port)
