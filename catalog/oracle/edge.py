"""Requests to a gateway from outside the mesh; a part of the oracle.

Written from the specification for gateways:

- Of the listeners in force at a port, only one answers: the listener with the most specific host name. With
  HTTPS and TLS this is the host name for the server name in TLS, and without one the connection is closed.
- A listener with HTTPS answers a request for the host of another listener with 421, and for a host of no
  listener with 404.
- Of the attached routes, the ones with the most specific host name decide first; a GRPCRoute before an
  HTTPRoute, and otherwise as in a mesh (`catalog.oracle.gateway`).
- A backend of another namespace needs a ReferenceGrant.
- A backend without sidecars whose BackendTLSPolicy cannot verify any certificate counts as missing. The
  oracle takes for granted that the certificates of other backends are good.
- The gateway calls the endpoints of a backend with the identity of a serving workload.

For example, listener `*.shop.example` answers for `eu.shop.example` beside a listener for all hosts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.oracle.gateway import RoutedRequest, RouteMatch, Way, fits_request, matches_of, outcome_of
from catalog.oracle.request.request import Request
from catalog.relations.backend_tls.decision import deciding_policy, fault_of
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.gateways.grants import is_granted
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.route_listeners import routes_at_listener
from catalog.relations.gateways.verdicts import ListenerVerdict
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Listener, ListenerProtocol
from meshwright.mesh.gateway.hostnames import most_specific, specificity
from meshwright.mesh.gateway.references import BackendObject
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import GRPC_ROUTE
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey, ServicePort

_WITH_REQUESTS = (ListenerProtocol.HTTP, ListenerProtocol.HTTPS)
_WITH_SERVER_NAMES = (ListenerProtocol.HTTPS, ListenerProtocol.TLS)


@dataclass(frozen=True, slots=True)
class EdgeRequest:
    """A request to a port of a gateway; `host` is without a port, and in lower case.

    `server_name` is the requested name in TLS, empty for `host`, as most clients have one name for both. At a
    listener with TLS or TCP the request is a connection.
    """

    gateway: PolicyKey
    port: Port
    host: str
    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    server_name: str = ""

    @property
    def name_in_tls(self) -> str:
        """The server name of a client with TLS."""
        return self.server_name or self.host


def listeners_at(view: View, gateway: PolicyKey, port: Port) -> tuple[ListenerVerdict, ...]:
    """Return the listeners in force at a port of a gateway, those of its ListenerSets last."""
    return tuple(
        verdict
        for verdict in listener_verdicts(view, gateway)
        if verdict.in_force and verdict.listener.port == port
    )


def listener_for(view: View, asked: EdgeRequest) -> ListenerVerdict | None:
    """Return the answering listener of a request; None if no host name covers the request's."""
    there = {found.listener.hostname: found for found in listeners_at(view, asked.gateway, asked.port)}
    is_tls = any(has_server_name(found.listener) for found in there.values())
    hostname = most_specific(there, asked.name_in_tls if is_tls else asked.host)
    return None if hostname is None else there[hostname]


def owner_of_host(view: View, asked: EdgeRequest) -> ListenerVerdict | None:
    """Return the listener at the port of a request with the host of the request; else None."""
    return listener_for(view, replace(asked, server_name=""))


def has_server_name(listener: Listener) -> bool:
    """Return whether the server name in TLS selects a listener."""
    return listener.protocol in _WITH_SERVER_NAMES


def has_requests(listener: Listener) -> bool:
    """Return whether a listener looks at requests, and not at connections alone."""
    return listener.protocol in _WITH_REQUESTS


def wanted_name(asked: EdgeRequest, listener: Listener) -> str:
    """Return the name by which a listener selects a route: the host, or for connections the server name."""
    return asked.host if has_requests(listener) else asked.name_in_tls


def fitting_at_edge(view: View, asked: EdgeRequest, answering: ListenerVerdict) -> tuple[RouteMatch, ...]:
    """Return the fitting matches of the attached routes; the first decides."""
    request, listener = as_call(asked, None), answering.listener
    attached = routes_at_listener(view, asked.gateway, listener.name, answering.listener_set)
    found = [
        (pattern, item)
        for item in matches_of(view, attached)
        if (pattern := _pattern(item, asked, listener)) is not None
        and (not has_requests(listener) or fits_request(item, request))
    ]
    # GRPCRoutes have narrower matches, and ranks of different kinds cannot be compared.
    found.sort(key=lambda pair: (specificity(pair[0]), pair[1].key.kind != GRPC_ROUTE, pair[1].rank))
    return tuple(item for _, item in found)


def routed_at_edge(view: View, asked: EdgeRequest, found: RouteMatch) -> RoutedRequest:
    """Return what the deciding match makes of a request, with the gateway as the client of the backends."""

    def may_refer(to: BackendObject) -> bool:
        target = ObjectKey(to.kind, to.namespace, to.name)
        return is_granted(view, found.key.kind, found.key.namespace, target) and not _is_unverifiable(
            view, to
        )

    def is_secured(service: ServiceKey, port: ServicePort) -> bool:
        return port.secure and deciding_policy(view, service, port) is not None

    return outcome_of(view, as_call(asked, None), found, may_refer, is_secured)


def _is_unverifiable(view: View, to: BackendObject) -> bool:
    """Return whether the gateway must not call a backend, because its policy cannot verify a certificate."""
    service = view.services.get(ServiceKey(to.namespace, ServiceName(to.name)))
    port = None if service is None or to.port is None else service.port(to.port)
    if service is None or port is None:
        return False
    policy = deciding_policy(view, service.key, port)
    there = endpoints(view, service.key, port)
    if policy is None or not there or any(endpoint.identity is not None for endpoint in there):
        return False
    return bool(fault_of(view, policy))


def calls_of(routed: RoutedRequest, client: ServiceIdentity) -> Iterator[Way]:
    """Yield the shares of the backends, each with the request of a gateway's workload to the backend."""
    for way in routed.ways:
        if way.weight:
            call = replace(way.request, client=client, service=way.service, port=way.port.port)
            yield replace(way, request=call)


def as_call(asked: EdgeRequest, client: ServiceIdentity | None) -> Request:
    """Return a request at a gateway in the form of a call; no Service is called yet."""
    nowhere = ServiceKey(Namespace(""), ServiceName(""))
    headers = (("host", asked.host), *asked.headers)
    return Request(client, nowhere, asked.port, asked.method, asked.path, headers)


def _pattern(item: RouteMatch, asked: EdgeRequest, listener: Listener) -> str | None:
    """Return the host name of a route for a request; None if the route is for other hosts."""
    # TCP has no names, so every route is for all connections.
    if listener.protocol == ListenerProtocol.TCP:
        return ""
    return most_specific(item.route.hostnames or ("",), wanted_name(asked, listener))
