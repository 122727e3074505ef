"""Tests of `meshwright diff` with added, changed and removed routes of the Gateway API."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from meshwright.cli.offline.mesh import read
from tests.feature.cli.test_diff import Served
from tests.meshes import texts
from tests.unit.cli.api import answering
from tests.unit.cli.commands.test_explain import Run

PORTS: Final = (
    texts.port(80, 8080),
    texts.port(90, 9090, "grpc"),
    texts.port(3306, 3306, "tcp"),
    texts.port(443, 8443, "tls"),
)
MESH: Final = (
    texts.PERMISSIVE,
    *(texts.service(name, *PORTS) for name in ("store", "old-db", "new-db")),
    texts.workload("buyer", "10.0.0.1"),
    texts.workload("eve", "10.0.0.2", namespace="other"),
)
BUYER, EVE = "buyer.buyer.shop", "eve.eve.other"


def route(kind: str, port: int, rule: str, namespace: str = "shop") -> str:
    """Return a route for a port of the Service `store`."""
    parent = f'{{group: "", kind: Service, name: store, namespace: shop, port: {port}}}'
    names = "hostnames: [a.example], " if kind == "TLSRoute" else ""
    return (
        f"apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\n"
        f"metadata: {{name: web, namespace: {namespace}}}\n"
        f"spec: {{{names}parentRefs: [{parent}], rules: [{rule}]}}\n"
    )


def backend(name: str, port: int) -> str:
    """Return the backend of a rule."""
    return f"backendRefs: [{{name: {name}, namespace: shop, port: {port}}}]"


def by_path(path: str) -> str:
    """Return a rule for requests of a path."""
    return f'{{matches: [{{path: {{type: Exact, value: "{path}"}}}}], {backend("store", 80)}}}'


def by_method(method: str) -> str:
    """Return a rule for calls of a gRPC method."""
    return f"{{matches: [{{method: {{service: Shop, method: {method}}}}}], {backend('store', 90)}}}"


OUTBOUND: Final = "listener outbound-listener"
KINDS: Final = [
    ("HTTPRoute", 80, by_path("/old"), by_path("/new"), "route rds-outbound.shop/store|80", "/new"),
    ("GRPCRoute", 90, by_method("Old"), by_method("New"), "route rds-outbound.shop/store|90", "/Shop/New"),
    (
        "TCPRoute",
        3306,
        f"{{{backend('old-db', 3306)}}}",
        f"{{{backend('new-db', 3306)}}}",
        OUTBOUND,
        "shop/new-db|3306",
    ),
    (
        "TLSRoute",
        443,
        f"{{{backend('old-db', 443)}}}",
        f"{{{backend('new-db', 443)}}}",
        OUTBOUND,
        "shop/new-db|8443",
    ),
]


async def difference(run: Run, folder: Path, served: tuple[str, ...], wanted: tuple[str, ...]) -> list[str]:
    """Return the lines that the command prints for two directories; there must be differences."""
    for name, documents in (("served", served), ("wanted", wanted)):
        (folder / name).mkdir()
        (folder / name / "mesh.yaml").write_text(texts.joined(*documents))
    reading: Any = Served(read(folder / "served").view)
    async with answering(reading, folder):
        done = await asyncio.to_thread(run, "diff", str(folder / "wanted"), "--state", str(folder))
    assert (done.returncode, done.stderr) == (1, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(("kind", "port", "old", "new", "resource", "word"), KINDS)
@pytest.mark.parametrize("change", ["added", "changed", "removed"])
async def test_diff_names_proxies_and_requests_of_a_producer_route(
    run: Run, tmp_path: Path, kind: str, port: int, old: str, new: str, resource: str, word: str, change: str
) -> None:
    """A route of the Service's namespace changes the proxies of all callers, at this port alone."""
    plain, there, edited = MESH, (*MESH, route(kind, port, old)), (*MESH, route(kind, port, new))
    before, after = {"added": (plain, edited), "changed": (there, edited), "removed": (edited, plain)}[change]
    lines = await difference(run, tmp_path, before, after)
    assert lines[:3] == ["2 proxies would change, 0 would not", "", f"{BUYER}, {EVE}"]
    # Further resources, for example the cluster of a backend, are added or removed.
    assert [line for line in lines if line.startswith("  ~ ")] == [f"  ~ {resource}"]
    differing = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    signs = {line[0] for line in differing if word in line}
    assert signs == ({"-"} if change == "removed" else {"+"})


async def test_diff_names_only_the_callers_of_a_consumer_route(run: Run, tmp_path: Path) -> None:
    """A route of another namespace changes the proxies of its own namespace alone."""
    consumer = route("HTTPRoute", 80, by_path("/new"), namespace="other")
    lines = await difference(run, tmp_path, MESH, (*MESH, consumer))
    assert lines[:4] == ["1 proxy would change, 1 would not", "", EVE, "  ~ route rds-outbound.shop/store|80"]
    assert any(line.startswith("+") and "HTTPRoute:other/web/rule-1" in line for line in lines)
