"""Random routes of the Gateway API beside a policy, and requests that they decide."""

from dataclasses import replace
from random import Random
from typing import Final

from catalog.oracle.decide import Request
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName
from tests.differential.routes.http_routes import Asked, asked_of, http_route
from tests.differential.routes.manifests import NAMESPACES, PARENTS
from tests.differential.routes.other_kinds import SERVER_NAMES, call_of, grpc_route, tcp_route, tls_route
from tests.differential.servers import NUMBER
from tests.differential.topology import (
    EVERY,
    GRPC,
    SECURE,
    SERVERS,
    TLS,
    WORKLOADS,
    Document,
    Offers,
    Runs,
    is_http,
)
from tests.differential.wire import over_http2

_CALLERS: Final = tuple(workload for workload in WORKLOADS if workload.calls)
_KINDS: Final = {"HTTPRoute": 10, "GRPCRoute": 4, "TLSRoute": 3, "TCPRoute": 3}
_MAKERS: Final = {
    "HTTPRoute": http_route,
    "GRPCRoute": grpc_route,
    "TLSRoute": tls_route,
    "TCPRoute": tcp_route,
}


def routes(random: Random) -> list[Document]:
    """Make a few routes, mostly of one kind for one Service, of producers and of consumers."""
    leading = random.choices(list(_KINDS), list(_KINDS.values()))[0]
    favoured = random.choice(SECURE if leading == "TLSRoute" else PARENTS)
    kinds = [
        leading if random.random() < 0.75 else random.choices(list(_KINDS), list(_KINDS.values()))[0]
        for _ in range(random.randint(1, 4))
    ]
    return [_MAKERS[kind](random, f"route.{number}", favoured) for number, kind in enumerate(kinds)]


def permissions(random: Random) -> list[Document]:
    """Permit some callers everything at some servers, so that routes decide and not only access."""
    made = [_permission(random, server) for server in SERVERS if random.random() < 0.7]
    return [*made, *map(_any_port, NAMESPACES)]


def _any_port(namespace: str) -> Document:
    return {
        "apiVersion": "specs.smi-spec.io/v1alpha4",
        "kind": "TCPRoute",
        "metadata": {"name": "any", "namespace": namespace},
        "spec": {"matches": {}},
    }


def _permission(random: Random, server: Runs) -> Document:
    callers = random.sample(_CALLERS, random.choice((1, 2, 3, 3)))
    return {
        "apiVersion": "access.smi-spec.io/v1alpha3",
        "kind": "TrafficTarget",
        "metadata": {"name": f"any.{server.account}", "namespace": server.namespace},
        "spec": {
            "destination": {"kind": "ServiceAccount", "name": server.account, "namespace": server.namespace},
            "sources": [
                {"kind": "ServiceAccount", "name": item.account, "namespace": item.namespace}
                for item in callers
            ],
            "rules": [{"kind": "TCPRoute", "name": "any"}],
        },
    }


def asked(random: Random, made: list[Document]) -> Request:
    """Make a request to a parent of a route, in most cases one that a match of the route fits."""
    route = random.choice(made)
    kind, parent = route["kind"], random.choice(route["spec"]["parentRefs"])
    service = next(
        item for item in EVERY if (item.namespace, item.name) == (parent["namespace"], parent["name"])
    )
    home = [item for item in _CALLERS if item.namespace == route["metadata"]["namespace"]]
    client = random.choice(home if random.random() < 0.6 else _CALLERS)
    who = ServiceIdentity(Namespace(client.namespace), ServiceAccountName(client.account))
    port = _port(random, kind, parent, service)
    request = Request(who, service.key, Port(port))
    if not is_http(port):
        return _connection(random, request)
    is_call = kind == "GRPCRoute"
    if kind not in ("HTTPRoute", "GRPCRoute"):
        return _with(random, request, Asked("GET", "/books", (("Host", "web.shop"),)))
    given = _with(random, request, call_of(random, route) if is_call else asked_of(random, route))
    return over_http2(given) if is_call or port == GRPC or random.random() < 0.2 else given


def _port(random: Random, kind: str, parent: Document, service: Offers) -> int:
    """Return a port of a parent, in most cases one to which the route can attach."""
    numbers = [number for number, *_ in service.ports]
    named = [number for number, _, _, name in service.ports if name == parent.get("sectionName")]
    if random.random() < 0.9:
        if parent.get("port") in numbers:
            return int(parent["port"])
        if named:
            return named[0]
    fitting = [number for number in numbers if is_http(number) == (kind in ("HTTPRoute", "GRPCRoute"))]
    return random.choice(fitting or numbers)


def _connection(random: Random, request: Request) -> Request:
    return replace(request, server_name=random.choice(SERVER_NAMES) if request.port == TLS else "")


def _with(random: Random, request: Request, given: Asked) -> Request:
    number = (NUMBER, f"{random.getrandbits(64):016x}")
    return replace(request, method=given.method, path=given.path, headers=(*given.headers, number))
