"""Random routes of the Gateway API beside a policy, with requests that they decide."""

from dataclasses import replace
from random import Random
from typing import Final

from catalog.oracle.decide import Request
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName
from tests.differential.topology import GRPC, SERVICES, TCP, WORKLOADS, Document, Offers
from tests.differential.wire import over_http2

GATEWAY_API: Final = "gateway.networking.k8s.io/v1"
VALUES: Final = (
    *(("Exact", "/books"), ("Exact", "/books/1"), ("Exact", "/status"), ("Exact", "/")),
    *(("PathPrefix", "/"), ("PathPrefix", "/books"), ("PathPrefix", "/books/"), ("PathPrefix", "/b")),
    *(("RegularExpression", "/books/[0-9]+"), ("RegularExpression", "/b.*"), ("RegularExpression", "/[^/]*")),
)
PATHS: Final = ("/books", "/books/1", "/books/x", "/books/", "/status", "/", "/bookshelf", "/b", "/b/c")
QUERIES: Final = ("", "", "?q=1", "?q=2", "?q=1&q=2", "?p=1&q=1", "?Q=1", "?q=%31")
TAGS: Final = ((), (), (("x-tag", "a"),), (("X-Tag", "b"),), (("x-tag", "a"), ("x-other", "7")))
CREATED: Final = ("", "", "2023-01-01T00:00:00Z", "2024-06-01T12:00:00Z")
PARENTS: Final = tuple(offers for offers in SERVICES if not offers.headless)
_CALLERS: Final = tuple(workload for workload in WORKLOADS if workload.calls)


def routes(random: Random) -> list[Document]:
    """Make a few routes, mostly for one Service, of producers and of consumers."""
    favoured = random.choice(PARENTS)
    made = [_http_route(random, number, _parent(random, favoured)) for number in range(random.randint(1, 4))]
    if random.random() < 0.3:
        made.append(_tcp_route(random, _parent(random, favoured)))
    return made


def asked(random: Random, made: list[Document]) -> Request:
    """Make a request to a parent of a route, in most cases one that a match of the route fits."""
    route = random.choice(made)
    parent = route["spec"]["parentRefs"][0]
    service = next(
        offers
        for offers in SERVICES
        if (offers.namespace, offers.name) == (parent["namespace"], parent["name"])
    )
    client = random.choice(_CALLERS)
    who = ServiceIdentity(Namespace(client.namespace), ServiceAccountName(client.account))
    port = parent.get("port") or random.choice([number for number, *_ in service.ports])
    if port == TCP:
        return Request(who, service.key, Port(port))
    path = random.choice(PATHS) + random.choice(QUERIES)
    method = random.choice(("GET", "GET", "POST", "HEAD"))
    headers = (("Host", "web.shop"), *random.choice(TAGS))
    request = Request(who, service.key, Port(port), method, path, headers)
    return over_http2(request) if port == GRPC or random.random() < 0.2 else request


def _parent(random: Random, favoured: Offers) -> Offers:
    return favoured if random.random() < 0.8 else random.choice(PARENTS)


def _route(random: Random, kind: str, name: str, parent: Offers, port: int | None) -> Document:
    namespace = parent.namespace if random.random() < 0.75 else random.choice(("shop", "bank"))
    reference: Document = {
        "group": "",
        "kind": "Service",
        "namespace": parent.namespace,
        "name": parent.name,
    }
    if port is not None:
        reference["port"] = port
    metadata = {"name": name, "namespace": namespace}
    if created := random.choice(CREATED):
        metadata["creationTimestamp"] = created
    return {
        "apiVersion": GATEWAY_API,
        "kind": kind,
        "metadata": metadata,
        "spec": {"parentRefs": [reference], "rules": []},
    }


def _http_route(random: Random, number: int, parent: Offers) -> Document:
    ports = [number for number, *_ in parent.ports if number != TCP]
    port = random.choice((None, ports[0], ports[0], random.choice(ports)))
    route = _route(random, "HTTPRoute", f"route.{number}", parent, port)
    route["spec"]["rules"] = [_rule(random) for _ in range(random.randint(1, 3))]
    return route


def _tcp_route(random: Random, parent: Offers) -> Document:
    route = _route(random, "TCPRoute", "tcp", parent, TCP)
    backends = [_backend(random, TCP) for _ in range(random.randint(1, 2))]
    route["spec"]["rules"] = [{"backendRefs": backends}]
    return route


def _rule(random: Random) -> Document:
    matches = [_match(random) for _ in range(random.randint(0, 2))]
    rule: Document = {"matches": matches} if matches else {}
    if random.random() < 0.1:
        rule["filters"] = [{"type": "RequestRedirect", "requestRedirect": {"hostname": "other.example"}}]
        return rule
    filters: list[Document] = []
    if random.random() < 0.25:
        changes = random.choice(
            (
                {"set": [{"name": "x-tag", "value": "b"}]},
                {"add": [{"name": "x-other", "value": "7"}]},
                {"remove": ["x-tag"]},
            )
        )
        filters.append({"type": "RequestHeaderModifier", "requestHeaderModifier": changes})
    if random.random() < 0.2:
        filters.append({"type": "URLRewrite", "urlRewrite": {"path": _new_path(random, matches)}})
    if filters:
        rule["filters"] = filters
    backends = [_backend(random, 80) for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3)))]
    if backends:
        rule["backendRefs"] = backends
    return rule


def _new_path(random: Random, matches: list[Document]) -> Document:
    paths = [match.get("path", {}).get("type", "PathPrefix") for match in matches]
    if paths == ["PathPrefix"] and "path" in matches[0] and random.random() < 0.6:
        new = random.choice(("/", "/status", "/books/new", ""))
        return {"type": "ReplacePrefixMatch", "replacePrefixMatch": new}
    return {"type": "ReplaceFullPath", "replaceFullPath": random.choice(("/books/1", "/status", "/"))}


def _match(random: Random) -> Document:
    match: Document = {}
    if random.random() < 0.8:
        kind, value = random.choice(VALUES)
        match["path"] = {"type": kind, "value": value}
    if random.random() < 0.2:
        match["method"] = random.choice(("GET", "POST"))
    if random.random() < 0.25:
        kind, value = random.choice((("Exact", "a"), ("Exact", "b"), ("RegularExpression", "[ab]+")))
        match["headers"] = [{"name": random.choice(("x-tag", "X-Tag")), "type": kind, "value": value}]
    if random.random() < 0.15:
        match["queryParams"] = [{"name": "q", "value": random.choice(("1", "2"))}]
    return match


def _backend(random: Random, port: int) -> Document:
    offers = random.choice([item for item in SERVICES if not item.headless])
    backend: Document = {
        "name": "missing" if random.random() < 0.1 else offers.name,
        "namespace": offers.namespace,
        "port": port if any(number == port for number, *_ in offers.ports) else offers.ports[0][0],
    }
    if random.random() < 0.5:
        backend["weight"] = random.choice((0, 1, 3))
    return backend


def forwarded(request: Request) -> Request:
    """Return a request for a server's sidecar itself: no sidecar of the client has changed it."""
    return replace(request, forwarded=True)
