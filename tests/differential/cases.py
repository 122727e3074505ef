"""Random policies, and requests that mean something to them; all from one seed."""

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from catalog.decide import Request
from mesh.identity import ServiceIdentity
from mesh.names import Namespace, Port, ServiceAccountName
from tests.differential.topology import GRPC, SERVICES, TCP, WORKLOADS, Offers, Runs, is_http
from tests.differential.wire import Asked

Document = dict[str, Any]

CLIENTS: Final = tuple(each for each in WORKLOADS if each.calls)
SERVERS: Final = tuple(each for each in WORKLOADS if each.labels)
SOURCES: Final = (
    ("shop", "alice"),
    ("bank", "bob"),
    ("shop", "v1"),
    ("shop", "al.ce"),  # must not be taken for an expression that alice fits
    ("shop", "nobody"),
)
PATTERNS: Final = (
    *(None, ".*", "/books", "/books/.*", "/b.*", "/books/[0-9]+", "/(books|status)", r"/a\.b", "/a.b"),
    *(r"/[a-z]+(/\d{1,3})?", "/status", "books", "/BOOKS", "(?i)/BOOKS.*", "/"),
)
PATHS: Final = (
    *("/books", "/books/1", "/books/x", "/books?x=/status", "/books/", "/status", "/status?q=1", "/a.b"),
    *("/axb", "/", "/x/books", "/book", "/BOOKS"),
)
DRESSED: Final = {
    "/books": ("/x/../books", "/./books", "/%62ooks"),
    "/books/": ("/books/.", "/books/1/%2e%2E/"),
    "/status": ("/books/../status", "/books/%2E%2E/status"),
    "/": ("/books/..",),
}
"""Other ways to write some paths; the server gets, and the oracle is asked about, the plain one."""
METHODS: Final = (None, None, ["*"], ["GET"], ["POST"], ["GET", "HEAD"], ["PUT", "DELETE", "GET"])
ASKED: Final = ("GET", "GET", "GET", "POST", "PUT", "HEAD", "DELETE")
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
GIVEN: Final = (
    *(("x-tag", "a"), ("X-Tag", "b"), ("x-tag", "ab"), ("X-TAG", ""), ("x-other", "7"), ("x-other", "z")),
    *(("User-Agent", "curl/8"), ("User-Agent", "wget"), ("cookie", "tag=a"), ("cookie", "k=v")),
)
HOSTS: Final = ("web.shop", "webxshop", "other")
MATCH_NAMES: Final = ("read", "write", ".*", "read|write", "a+b")
CREATED: Final = ("", "", "2023-01-01T00:00:00Z", "2024-06-01T12:00:00Z", "2024-06-01T12:00:01Z")


@dataclass(frozen=True)
class Case:
    """A policy with what is asked under it."""

    documents: tuple[Document, ...]
    requests: tuple[Asked, ...]


def case(random: Random, requests: int) -> Case:
    """Make a case."""
    found = [*_routes(random, "shop"), *_routes(random, "bank")]
    kinds: dict[tuple[str, str], list[Document]] = {}
    for each in found:
        kinds.setdefault((each["metadata"]["namespace"], each["kind"]), []).append(each)
    favoured = random.choice(SERVERS)
    for number in range(random.randint(3, 9)):
        server = favoured if random.random() < 0.7 else random.choice(SERVERS)
        found.append(_target(random, number, server, kinds))
    found.extend(_split(random, number, kinds) for number in range(random.choice((0, 1, 2, 2, 3))))
    if random.random() < 0.12:
        found.append(_permissive())
    found.extend(_namespace(random, each) for each in ("shop", "bank") if random.random() < 0.15)
    return Case(tuple(found), tuple(_asked(random, found, favoured) for _ in range(requests)))


def _asked(random: Random, policy: list[Document], favoured: Runs) -> Asked:
    request = _request(random, policy, favoured)
    path = request.path
    if path in DRESSED and random.random() < 0.2:
        path = random.choice(DRESSED[path])
    if request.port == GRPC or random.random() < 0.2:
        return Asked.over_http2(request, path)
    return Asked(request, path)


def _object(api: str, kind: str, namespace: str, name: str, spec: Document) -> Document:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _routes(random: Random, namespace: str) -> list[Document]:
    found = []
    for number in range(random.randint(1, 3)):
        names = random.sample(MATCH_NAMES, random.randint(1, 4))
        matches = [_match(random, name) for name in names]
        name = f"g.{number}"
        found.append(
            _object("specs.smi-spec.io/v1alpha4", "HTTPRouteGroup", namespace, name, {"matches": matches})
        )
    for number in range(random.randint(1, 2)):
        ports = random.choice(([], [8080], [TCP], [8081], [8080, TCP], [8080, 8081, GRPC]))
        spec = {"matches": {"ports": ports} if ports else {}}
        found.append(_object("specs.smi-spec.io/v1alpha4", "TCPRoute", namespace, f"t.{number}", spec))
    return found


def _match(random: Random, name: str) -> Document:
    match: Document = {"name": name}
    pattern, methods = random.choice(PATTERNS), random.choice(METHODS)
    if pattern is not None:
        match["pathRegex"] = pattern
    if methods is not None:
        match["methods"] = methods
    if random.random() < 0.3:
        match["headers"] = random.choice(HEADERS)
    return match


def _target(
    random: Random, number: int, server: Runs, kinds: dict[tuple[str, str], list[Document]]
) -> Document:
    groups, routes = (kinds[server.namespace, kind] for kind in ("HTTPRouteGroup", "TCPRoute"))
    rules: list[Document] = []
    shape = random.choices(("http", "tcp", "both", "none"), (55, 15, 28, 2))[0]
    if shape in ("http", "both"):
        rules.extend(
            _http_rule(random, each) for each in random.sample(groups, random.randint(1, len(groups)))
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
    there = [each.name for each in SERVICES if each.namespace == namespace]
    apex = random.choice((*there, "root", "web") if namespace == "shop" else (*there, "gate"))
    names = random.sample([*there, "missing"], random.randint(1, min(3, len(there))))
    backends = [{"service": each, "weight": random.choice((0, 1, 1, 50, 90))} for each in names]
    spec: Document = {"service": random.choice((apex, f"{apex}.{namespace}")), "backends": backends}
    if random.random() < 0.5:
        groups = kinds[namespace, "HTTPRouteGroup"]
        chosen = random.sample(groups, random.randint(1, len(groups)))
        spec["matches"] = [{"kind": "HTTPRouteGroup", "name": each["metadata"]["name"]} for each in chosen]
    found = _object("split.smi-spec.io/v1alpha4", "TrafficSplit", namespace, f"split.{number}", spec)
    if created := random.choice(CREATED):
        found["metadata"]["creationTimestamp"] = created
    return found


def _permissive() -> Document:
    spec = {"traffic": {"enablePermissiveTrafficPolicyMode": True}}
    return _object("config.openservicemesh.io/v1alpha2", "MeshConfig", "osm-system", "osm-mesh-config", spec)


def _namespace(random: Random, name: str) -> Document:
    annotations = {"meshwright.dev/permissive": random.choice(("true", "false", "false"))}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


def _request(random: Random, policy: list[Document], favoured: Runs) -> Request:
    """Make a request; mostly one that some target, or some split, has to do with."""
    targets = [each for each in policy if each["kind"] == "TrafficTarget"]
    client, server = random.choice(CLIENTS), favoured
    if random.random() < 0.9:
        spec = random.choice(targets)["spec"]
        server = next(each for each in SERVERS if each.account == spec["destination"]["name"])
        named = {(each["namespace"], each["name"]) for each in spec["sources"]}
        meant = [each for each in CLIENTS if (each.namespace, each.account) in named]
        client = random.choice(meant or CLIENTS)
    service = random.choice(_services(random, policy, server))
    port = random.choices(
        [each[0] for each in service.ports], [10, 2, 3, 2] if len(service.ports) == 4 else [5, 1]
    )[0]
    who = ServiceIdentity(Namespace(client.namespace), ServiceAccountName(client.account))
    if not is_http(port):
        return Request(who, service.key, Port(port))
    headers = [("Host", random.choice(HOSTS)), *random.choices(GIVEN, k=random.choice((0, 0, 1, 2, 3)))]
    return Request(who, service.key, Port(port), random.choice(ASKED), random.choice(PATHS), tuple(headers))


def _services(random: Random, policy: list[Document], server: Runs) -> list[Offers]:
    apexes = {
        (each["metadata"]["namespace"], each["spec"]["service"].split(".")[0])
        for each in policy
        if each["kind"] == "TrafficSplit"
    }
    split = [each for each in SERVICES if (each.namespace, each.name) in apexes]
    if split and random.random() < 0.35:
        return split
    return [each for each in SERVICES if each.selects in server.labels] or list(SERVICES)
