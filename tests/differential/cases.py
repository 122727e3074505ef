"""Random policies with requests for which they matter, from one seed."""

from dataclasses import dataclass
from random import Random
from typing import Final

from catalog.oracle.decide import Request
from meshwright.specs.regexes import regex_fault
from tests.differential.random_mutual_tls import mutual_tls
from tests.differential.random_requests import asked
from tests.differential.routes import random_routes
from tests.differential.topology import GRPC, SERVERS, SERVICES, TCP, Document, Runs

SOURCES: Final = (
    ("shop", "alice"),
    ("bank", "bob"),
    ("shop", "v1"),
    ("shop", "al.ce"),  # must not be taken for an expression that alice fits
    ("shop", "nobody"),
)
PLAIN_PATTERNS: Final = (
    *(None, ".*", "/books", "/books/.*", "/b.*", "/books/[0-9]+", "/(books|status)", r"/a\.b", "/a.b"),
    *(r"/[a-z]+(/\d{1,3})?", "/status", "books", "/BOOKS", "/", "/books//.*", "/x/.*"),
)
RE2_PATTERNS: Final = tuple(
    pattern
    for pattern in (
        *("(?i)/BOOKS.*", "/b{,3}ooks", "/books{,3}", "/[bs{,3}tauok]+", r"/\pL+", r"/\p{Ll}+(/.*)?"),
        *(
            r"/[[:alpha:]]+",
            r"/[[:^digit:]]*",
            r"/\x{62}ooks",
            r"/\x62ooks(/\w*)?",
            r"/\Qbooks\E",
            r"^/books$",
        ),
        *(r"/books\z", "(?P<all>/b.*)", "(?U)/b.*", "/(?:books|status)/*", r"/[^\x00-\x2f]+", "(?s:/b.*)"),
        *("/books/%C3%A9", r"/books/%[[:xdigit:]]{2}.*", "/books/é", r"/b%2[Ff]ooks", r"/\Cooks", "/[^é]*"),
    )
    if not regex_fault(pattern)
)
"""Expressions that RE2 reads otherwise than others do, or that decide at characters other than letters.

Those that our readers refuse are left out: what is refused is in force nowhere.
"""
METHODS: Final = (None, None, ["*"], ["GET"], ["POST"], ["GET", "HEAD"], ["PUT", "DELETE", "GET"])
HEADERS: Final[tuple[dict[str, str] | list[dict[str, str]], ...]] = (
    {"x-tag": "a|b"},
    {"X-Tag": "a.*"},
    {"x-tag": ".*"},
    {"x-tag": "a", "x-other": "1"},
    [{"x-other": "[0-9]+"}, {"x-tag": "b"}],
    {"host": r"web\.shop"},
    {"host": "web.shop"},
    {"user-agent": "curl/.*"},
    {"cookie": "tag=a"},
)
MATCH_NAMES: Final = ("read", "write", ".*", "read|write", "a+b")
CREATED: Final = ("", "", "2023-01-01T00:00:00Z", "2024-06-01T12:00:00Z", "2024-06-01T12:00:01Z")


@dataclass(frozen=True)
class Flavour:
    """Weights for random policies: of matches (without headers, with, with only headers) and of rules."""

    matches: tuple[int, int, int]
    rules: tuple[int, int, int, int]
    targets: tuple[int, int]


MIXED: Final = Flavour((14, 4, 2), (55, 15, 28, 2), (4, 9))
HEADED: Final = Flavour((0, 1, 3), (80, 3, 15, 2), (3, 5))
"""Headers decide: nearly nothing else is asked for, and few targets unite."""


ROUTED: Final = 0.3
"""The share of cases with routes of the Gateway API."""


@dataclass(frozen=True)
class Case:
    """A policy with its requests."""

    documents: tuple[Document, ...]
    requests: tuple[Request, ...]


def case(random: Random, requests: int, routed: float = ROUTED) -> Case:
    """Make a case; `routed` is the share of cases with routes of the Gateway API."""
    flavour = HEADED if random.random() < 0.25 else MIXED
    result = [route for namespace in ("shop", "bank") for route in _routes(random, namespace, flavour)]
    kinds: dict[tuple[str, str], list[Document]] = {}
    for item in result:
        kinds.setdefault((item["metadata"]["namespace"], item["kind"]), []).append(item)
    favoured = random.choice(SERVERS)
    for number in range(random.randint(*flavour.targets)):
        server = favoured if random.random() < 0.7 else random.choice(SERVERS)
        result.append(_target(random, number, server, kinds, flavour))
    result.extend(_split(random, number, kinds) for number in range(random.choice((0, 1, 2, 2, 3))))
    if random.random() < 0.12:
        result.append(_permissive())
    result.extend(_namespace(random, item) for item in ("shop", "bank") if random.random() < 0.15)
    made = tuple(asked(random, result, favoured) for _ in range(requests))
    made_here = Case((*result, *mutual_tls(random)), made)
    return _with_routes(random, made_here) if random.random() < routed else made_here


def _with_routes(random: Random, plain: Case) -> Case:
    """Return a case with routes of the Gateway API, and three in four of its requests for them."""
    routes = random_routes.routes(random)
    permissions = random_routes.permissions(random) if random.random() < 0.6 else []
    requests = tuple(
        random_routes.asked(random, routes) if random.random() < 0.75 else request
        for request in plain.requests
    )
    return Case((*plain.documents, *permissions, *routes), requests)


def _object(api: str, kind: str, namespace: str, name: str, spec: Document) -> Document:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _routes(random: Random, namespace: str, flavour: Flavour) -> list[Document]:
    result = []
    for number in range(random.randint(1, 3)):
        names = random.sample(MATCH_NAMES, random.randint(1, 4))
        matches = [_match(random, name, flavour) for name in names]
        name = f"g.{number}"
        result.append(
            _object("specs.smi-spec.io/v1alpha4", "HTTPRouteGroup", namespace, name, {"matches": matches})
        )
    for number in range(random.randint(1, 2)):
        ports = random.choice(([], [8080], [TCP], [8081], [8080, TCP], [8080, 8081, GRPC]))
        spec = {"matches": {"ports": ports} if ports else {}}
        result.append(_object("specs.smi-spec.io/v1alpha4", "TCPRoute", namespace, f"t.{number}", spec))
    return result


def _match(random: Random, name: str, flavour: Flavour) -> Document:
    """Make a match without headers, with some, or with headers only, which then decide alone."""
    match: Document = {"name": name}
    patterns: tuple[str | None, ...] = RE2_PATTERNS if random.random() < 0.35 else PLAIN_PATTERNS
    pattern, methods = random.choice(patterns), random.choice(METHODS)
    kind = random.choices(("plain", "headers", "headers alone"), flavour.matches)[0]
    if pattern is not None and kind != "headers alone":
        match["pathRegex"] = pattern
    if methods is not None and kind != "headers alone":
        match["methods"] = methods
    if kind != "plain":
        match["headers"] = random.choice(HEADERS)
    return match


def _target(
    random: Random,
    number: int,
    server: Runs,
    kinds: dict[tuple[str, str], list[Document]],
    flavour: Flavour,
) -> Document:
    groups, routes = (kinds[server.namespace, kind] for kind in ("HTTPRouteGroup", "TCPRoute"))
    rules: list[Document] = []
    shape = random.choices(("http", "tcp", "both", "none"), flavour.rules)[0]
    if shape in ("http", "both"):
        rules.extend(
            _http_rule(random, item) for item in random.sample(groups, random.randint(1, len(groups)))
        )
    if shape in ("tcp", "both"):
        name = random.choice(routes)["metadata"]["name"] if random.random() < 0.95 else "missing"
        rules.append({"kind": "TCPRoute", "name": name})
    sources = random.sample(SOURCES, random.randint(2, 4))
    destination: Document = {"kind": "ServiceAccount", "name": server.account, "namespace": server.namespace}
    version = "v1alpha3"
    if random.random() < 0.05:
        version, destination["port"] = "v1alpha2", random.choice((8080, 8081, GRPC, TCP))
    spec = {
        "destination": destination,
        "sources": [{"kind": "ServiceAccount", "namespace": ns, "name": name} for ns, name in sources],
        "rules": rules,
    }
    name = f"target.{number}"
    return _object(f"access.smi-spec.io/{version}", "TrafficTarget", server.namespace, name, spec)


def _http_rule(random: Random, group: Document) -> Document:
    rule: Document = {"kind": "HTTPRouteGroup", "name": group["metadata"]["name"]}
    if random.random() < 0.03:
        rule["name"] = "missing"
    if random.random() < 0.5:
        names = [match["name"] for match in group["spec"]["matches"]]
        rule["matches"] = random.sample(names, random.randint(1, len(names)))
        if random.random() < 0.05:
            rule["matches"].append("missing")
    return rule


def _split(random: Random, number: int, kinds: dict[tuple[str, str], list[Document]]) -> Document:
    namespace = random.choice(("shop", "shop", "bank"))
    there = [service.name for service in SERVICES if service.namespace == namespace]
    apex = random.choice((*there, "root", "web") if namespace == "shop" else (*there, "gate"))
    names = random.sample([*there, "missing"], random.randint(1, min(3, len(there))))
    backends = [{"service": name, "weight": random.choice((0, 1, 1, 50, 90))} for name in names]
    spec: Document = {"service": random.choice((apex, f"{apex}.{namespace}")), "backends": backends}
    if random.random() < 0.5:
        groups = kinds[namespace, "HTTPRouteGroup"]
        chosen = random.sample(groups, random.randint(1, len(groups)))
        spec["matches"] = [{"kind": "HTTPRouteGroup", "name": item["metadata"]["name"]} for item in chosen]
    result = _object("split.smi-spec.io/v1alpha4", "TrafficSplit", namespace, f"split.{number}", spec)
    if created := random.choice(CREATED):
        result["metadata"]["creationTimestamp"] = created
    return result


def _permissive() -> Document:
    spec = {"traffic": {"enablePermissiveTrafficPolicyMode": True}}
    return _object("config.openservicemesh.io/v1alpha2", "MeshConfig", "osm-system", "osm-mesh-config", spec)


def _namespace(random: Random, name: str) -> Document:
    annotations = {"meshwright.dev/permissive": random.choice(("true", "false", "false"))}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}
