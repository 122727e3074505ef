"""Manifests of random routes: parents, ages, matches of headers, and backends."""

from dataclasses import dataclass
from random import Random
from typing import Final

from tests.differential.topology import GRPC, SECURE, SERVICES, TCP, TLS, Document, Offers, is_http

GROUP: Final = "gateway.networking.k8s.io"
PARENTS: Final = tuple(offers for offers in SERVICES if not offers.headless)
CREATED: Final = ("", "", "2023-01-01T00:00:00Z", "2024-06-01T12:00:00Z", "2024-06-01T12:00:01Z")
NAMESPACES: Final = ("shop", "bank")


@dataclass(frozen=True)
class Form:
    """The form of a kind: its name, version, ports of parents, and the usual port of its backends."""

    kind: str
    ports: tuple[int, ...]
    backend: int
    version: str = "v1"


HTTP_FORM: Final = Form("HTTPRoute", (80, 80, 80, 81, GRPC), 80)
GRPC_FORM: Final = Form("GRPCRoute", (GRPC, GRPC, GRPC, 80), GRPC)
TCP_FORM: Final = Form("TCPRoute", (TCP, TCP, TLS), TCP)
TLS_FORM: Final = Form("TLSRoute", (TLS,), TLS)


def route(random: Random, form: Form, name: str, favoured: Offers, rules: list[Document]) -> Document:
    """Make a route, mostly for the favoured parent, in the namespace of its parent or in any other."""
    parents = [_parent(random, form, favoured) for _ in range(random.choice((1, 1, 1, 2)))]
    distinct = {(item["namespace"], item["name"]): item for item in parents}
    namespace = parents[0]["namespace"] if random.random() < 0.7 else random.choice(NAMESPACES)
    metadata = {"name": name, "namespace": namespace}
    if created := random.choice(CREATED):
        metadata["creationTimestamp"] = created
    return {
        "apiVersion": f"{GROUP}/{form.version}",
        "kind": form.kind,
        "metadata": metadata,
        "spec": {"parentRefs": list(distinct.values()), "rules": rules},
    }


def _parent(random: Random, form: Form, favoured: Offers) -> Document:
    """Refer to a Service by a port's number or name, by both, or as a whole; a few references fit nothing."""
    able = [item for item in (*SERVICES, *SECURE) if any(number in form.ports for number, *_ in item.ports)]
    offers = favoured if favoured in able and random.random() < 0.85 else random.choice(able)
    ports = [(number, name) for number, _, _, name in offers.ports if number in form.ports]
    number, name = random.choice(ports)
    parent: Document = {"group": "", "kind": "Service", "namespace": offers.namespace, "name": offers.name}
    match random.choices(("port", "name", "both", "all", "unfit"), (10, 2, 1, 5, 1))[0]:
        case "port":
            parent["port"] = number
        case "name":
            parent["sectionName"] = name
        case "both":
            parent |= {"port": number, "sectionName": name}
        case "unfit":
            parent["port"] = random.choice((TCP, 80, 9999))
        case _:
            pass
    return parent


def backends(random: Random, form: Form, least: int = 1) -> list[Document]:
    """Make up to three backends; with `least` 0 perhaps none."""
    numbers = (0, *(1, 1, 1, 2, 2, 3)) if least == 0 else (1, 1, 1, 2, 2, 3)
    return [backend(random, form) for _ in range(random.choice(numbers))]


def backend(random: Random, form: Form) -> Document:
    """Make a reference to a backend of any namespace; one in eight does not exist or does not fit."""
    able = [item for item in (*SERVICES, *SECURE) if any(number == form.backend for number, *_ in item.ports)]
    offers = random.choice(able)
    made: Document = {"name": offers.name, "namespace": offers.namespace, "port": form.backend}
    if random.random() < 0.1:
        other = random.choice(SERVICES)
        fitting = [number for number, *_ in other.ports if is_http(number) == is_http(form.backend)]
        made |= {"name": other.name, "namespace": other.namespace, "port": random.choice(fitting)}
    match random.choices(("good", "missing", "port", "kind", "protocol"), (28, 1, 1, 1, 1))[0]:
        case "missing":
            made["name"] = "missing"
        case "port":
            made["port"] = 9999
        case "kind":
            made |= {"group": "example.com", "kind": "Thing"}
        case "protocol":
            made |= {"name": "web", "namespace": "shop", "port": TCP}
        case _:
            pass
    if random.random() < 0.5:
        made["weight"] = random.choice((0, 1, 3, 50))
    return made


def header_matches(random: Random) -> list[Document]:
    """Make matches of one header, or of two with the same name, of which the first counts."""
    values = (("Exact", "a"), ("Exact", "b"), ("RegularExpression", "[ab]+"), ("RegularExpression", "a|b.*"))
    names = random.choice((("x-tag",), ("X-Tag",), ("x-other",), ("x-tag", "x-other"), ("x-tag", "X-TAG")))
    made = []
    for name in names:
        kind, value = random.choice((*values, ("Exact", "7"))) if "other" in name else random.choice(values)
        made.append({"name": name, "type": kind, "value": value})
    if random.random() < 0.15:
        kind, value = random.choice(
            (("Exact", "web.shop"), ("RegularExpression", "web\\..*"), ("Exact", "other"))
        )
        made.append({"name": random.choice(("Host", "host")), "type": kind, "value": value})
    return made
