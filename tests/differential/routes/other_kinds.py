"""Random GRPCRoutes, TLSRoutes and TCPRoutes, with calls and server names that they are likely to fit."""

from dataclasses import replace
from random import Random
from typing import Final

from tests.differential.routes import filters
from tests.differential.routes.http_routes import Asked
from tests.differential.routes.manifests import (
    GRPC_FORM,
    TCP_FORM,
    TLS_FORM,
    backends,
    header_matches,
    route,
)
from tests.differential.topology import Document, Offers

_EXACT: Final = (
    ("shop.Cart", "Add"),
    ("shop.Cart", None),
    ("shop.Catalog", "Get"),
    (None, "Add"),
    ("shop.Catalog", None),
    ("Cart", "AddAll"),
)
_REGEX: Final = (
    ("shop\\..*", None),
    (None, "Add.*"),
    ("shop.Cart", "[A-Z][a-z]+"),
    ("[a-z]+\\.(Cart|Catalog)", "Get|Add"),
    ("Cart", None),
)
_CALLS: Final = (
    "/shop.Cart/Add",
    "/shop.Cart/AddAll",
    "/shop.Catalog/Get",
    "/shopxCart/Add",
    "/Cart/AddAll",
    "/shop.cart/Add",
    "/bank.Vault/Open",
)
_TYPES: Final = (
    "application/grpc",
    "application/grpc",
    "application/grpc",
    "application/grpc+proto",
    "application/json",
)
_TAGS: Final = ((), (), (("x-tag", "a"),), (("x-tag", "b"), ("x-other", "7")))
_HOSTNAMES: Final = ("a.example", "b.example", "*.example", "*.a.example", "x.a.example", "*.b.example")
SERVER_NAMES: Final = (
    "a.example",
    "A.Example",
    "b.example",
    "c.example",
    "x.a.example",
    "y.x.a.example",
    "example",
    "a.b.example",
    "other.test",
    "",
)


def grpc_route(random: Random, name: str, favoured: Offers) -> Document:
    """Make a route with up to three rules for several services."""
    return route(random, GRPC_FORM, name, favoured, [_grpc_rule(random) for _ in range(random.randint(1, 3))])


def tls_route(random: Random, name: str, favoured: Offers) -> Document:
    """Make a route for server names; only v1alpha2 has several rules, and may lack names."""
    is_old = random.random() < 0.3
    rules = [
        {"backendRefs": backends(random, TLS_FORM)} for _ in range(random.choice((1, 2)) if is_old else 1)
    ]
    form = replace(TLS_FORM, version="v1alpha2") if is_old else TLS_FORM
    made = route(random, form, name, favoured, rules)
    if not is_old or random.random() < 0.7:
        made["spec"]["hostnames"] = random.sample(_HOSTNAMES, random.choice((1, 1, 2, 3)))
    return made


def tcp_route(random: Random, name: str, favoured: Offers) -> Document:
    """Make a route for all connections; only v1alpha2 has several rules."""
    is_old = random.random() < 0.3
    rules = [
        {"backendRefs": backends(random, TCP_FORM)} for _ in range(random.choice((1, 2)) if is_old else 1)
    ]
    form = replace(TCP_FORM, version="v1alpha2") if is_old else TCP_FORM
    return route(random, form, name, favoured, rules)


def call_of(random: Random, made: Document) -> Asked:
    """Make a gRPC call for a rule of a route; a few requests are not gRPC."""
    rule = random.choice(made["spec"]["rules"])
    match = random.choice(rule.get("matches", [{}]))
    path, tags = random.choice(_CALLS), random.choice(_TAGS)
    method = match.get("method", {})
    if random.random() < 0.6 and method.get("type", "Exact") == "Exact":
        path = f"/{method.get('service', 'shop.Cart')}/{method.get('method', 'Add')}"
    if "headers" in match and random.random() < 0.7:
        tags = (("x-tag", random.choice("ab")), ("x-other", "7"))
    return Asked(
        "POST",
        path,
        (("Host", "web.shop"), ("content-type", random.choice(_TYPES)), ("te", "trailers"), *tags),
    )


def _grpc_rule(random: Random) -> Document:
    matches = [_grpc_match(random) for _ in range(random.randint(0, 2))]
    rule: Document = {"matches": matches} if matches else {}
    made = []
    if random.random() < 0.2:
        made.append(filters.request_headers(random))
    if random.random() < 0.15:
        made.append(filters.response_headers(random, "x-app"))
    if random.random() < 0.08:
        made.append(filters.mirror(random, GRPC_FORM))
    if random.random() < 0.03:
        made.append(filters.extension())
    if made:
        rule["filters"] = made
    if to := backends(random, GRPC_FORM, least=0):
        rule["backendRefs"] = to
        for item in to:
            if random.random() < 0.15:
                item["filters"] = [filters.request_headers(random)]
    return rule


def _grpc_match(random: Random) -> Document:
    match: Document = {}
    if random.random() < 0.85:
        kind = random.choice(("Exact", "Exact", "RegularExpression"))
        service, method = random.choice(_EXACT if kind == "Exact" else _REGEX)
        match["method"] = {"type": kind} | {
            key: value for key, value in (("service", service), ("method", method)) if value is not None
        }
    if random.random() < 0.3:
        match["headers"] = header_matches(random)
    return match
