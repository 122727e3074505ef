"""Random requests for which a policy matters."""

from dataclasses import replace
from random import Random
from typing import Final

from catalog.oracle.decide import Request
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName
from tests.differential.targets import target, written
from tests.differential.topology import GRPC, SERVERS, SERVICES, WORKLOADS, Document, Offers, Runs, is_http
from tests.differential.wire import over_http2

CLIENTS: Final = tuple(workload for workload in WORKLOADS if workload.calls)
PATHS: Final = (
    *("/books", "/books/1", "/books/x", "/books?x=/status", "/books/", "/status", "/status?q=1", "/a.b"),
    *("/axb", "/", "/x/books", "/book", "/BOOKS", "/b{,3}ooks", "/books/%C3%A9", "/books//1", "/b%2Fooks"),
)
ASKED: Final = ("GET", "GET", "GET", "POST", "PUT", "HEAD", "DELETE")
GIVEN: Final = (
    *(("x-tag", "a"), ("X-Tag", "b"), ("x-tag", "ab"), ("X-TAG", ""), ("x-other", "7"), ("x-other", "z")),
    *(("User-Agent", "curl/8"), ("User-Agent", "wget"), ("cookie", "tag=a"), ("cookie", "k=v")),
)
HOSTS: Final = ("web.shop", "webxshop", "other", "Web.Shop:8080", "web.shop.", "web.shop.:81")


def asked(random: Random, policy: list[Document], favoured: Runs) -> Request:
    """Make a request for a policy, in HTTP/1.1 or HTTP/2, with its path perhaps in another spelling."""
    request = _request(random, policy, favoured)
    if is_http(request.port):
        request = replace(request, path=_path(random, request.path))
    return over_http2(request) if request.port == GRPC or random.random() < 0.2 else request


def _path(random: Random, path: str) -> str:
    """Return a path unchanged, in another spelling, or replaced by any request target."""
    match random.choices(("plain", "another way", "any"), (55, 38, 7))[0]:
        case "another way":
            return written(random, path)
        case "any":
            return target(random).decode("utf-8", "surrogateescape")
        case _:
            return path


def _request(random: Random, policy: list[Document], favoured: Runs) -> Request:
    """Make a request, in most cases one that a target or a split concerns."""
    targets = [item for item in policy if item["kind"] == "TrafficTarget"]
    client, server, asked = random.choice(CLIENTS), favoured, random.choice(targets)
    if random.random() < 0.9:
        spec = asked["spec"]
        server = next(runs for runs in SERVERS if runs.account == spec["destination"]["name"])
        named = {(source["namespace"], source["name"]) for source in spec["sources"]}
        meant = [runs for runs in CLIENTS if (runs.namespace, runs.account) in named]
        client = random.choice(meant or CLIENTS)
    service = random.choice(_services(random, policy, server))
    port = random.choices(
        [item[0] for item in service.ports], [10, 2, 3, 2] if len(service.ports) == 4 else [5, 1]
    )[0]
    who = ServiceIdentity(Namespace(client.namespace), ServiceAccountName(client.account))
    if not is_http(port):
        return Request(who, service.key, Port(port))
    headers = (("Host", random.choice(HOSTS)), *_headers(random, policy, asked))
    return Request(who, service.key, Port(port), random.choice(ASKED), random.choice(PATHS), headers)


def _headers(random: Random, policy: list[Document], target: Document) -> list[tuple[str, str]]:
    """Make headers, mostly those that a target's matches require, each absent, once or repeated."""
    if random.random() < 0.3:
        return random.choices(GIVEN, k=random.choice((0, 0, 1, 2, 3)))
    named_groups = {(target["metadata"]["namespace"], rule["name"]) for rule in target["spec"]["rules"]}
    wanted = [
        match["headers"]
        for item in policy
        if (item["metadata"].get("namespace"), item["metadata"]["name"]) in named_groups
        and item["kind"] == "HTTPRouteGroup"
        for match in item["spec"]["matches"]
        if "headers" in match
    ]
    named = random.choice(wanted or [{}])
    parts = named if isinstance(named, list) else [named]
    names = {name.lower() for part in parts for name in part}
    return [
        given
        for name in sorted(names)
        for given in random.choices(
            [item for item in GIVEN if item[0].lower() == name] or list(GIVEN),
            k=random.choice((0, 1, 1, 2, 2)),
        )
    ]


def _services(random: Random, policy: list[Document], server: Runs) -> list[Offers]:
    apexes = {
        (item["metadata"]["namespace"], item["spec"]["service"].split(".")[0])
        for item in policy
        if item["kind"] == "TrafficSplit"
    }
    split = [service for service in SERVICES if (service.namespace, service.name) in apexes]
    if split and random.random() < 0.35:
        return split
    return [service for service in SERVICES if service.selects in server.labels] or list(SERVICES)
