"""Tests of rejected resources: their last good version is served until their inputs change."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.feature.identity.conftest import Server
from tests.feature.rejection.conftest import WORDS, Join
from tests.meshes import texts
from tests.tools.deadline import until
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, ROUTE, SECRET, ResourceName
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Server]]
SHOP, BANK = "rds-outbound.shop/shop|80", "rds-outbound.shop/bank|80"


def service(name: str) -> str:
    """Return a service on port 80 with the target port 18080."""
    return texts.service(name, texts.port(80, 18080))


def _workload(name: str, app: str, address: str) -> str:
    more = f"service: {app}, ports: [{{port: 18080}}]"
    return texts.workload(name, address, app=app, account=app, spec=more)


def _split(name: str, apex: str = "shop", backend: str = "") -> str:
    return texts.split(name, apex, (f"{backend or apex}-v1", 1))


DOCUMENTS = (
    texts.PERMISSIVE,
    *map(service, ("buyer", "shop", "shop-v1", "bank", "bank-v1")),
    _workload("one", "buyer", "10.0.0.1"),
    _workload("two", "buyer", "10.0.0.2"),
    _workload("v1", "shop-v1", "10.0.0.3"),
    _workload("b1", "bank-v1", "10.0.0.4"),
)


async def _problems(server: Server) -> list[dict[str, Any]]:
    result = (await server.ask("GET", "/debug/policies"))["problems"]
    return [item for item in result if item["code"] == "resource-rejected"]


async def _problems_until(server: Server, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        while len(result := await _problems(server)) != count:
            await asyncio.sleep(0.01)
    return result


def _poisoned(value: bytes) -> bool:
    return b"poison" in value


@pytest.mark.parametrize("variant", list(Variant))
async def test_rejected_route_keeps_its_last_good_version(serve: Serve, join: Join, variant: Variant) -> None:
    """A new stream gets the good version too, other changes go on, and a fixed route is sent to all."""
    server = await serve(*DOCUMENTS, _split("good"), verify=True)
    picky = join(server, "one.buyer.shop", variant, _poisoned)
    easy = join(server, "two.buyer.shop", variant)
    await until(lambda: all(b"split:shop/good" in sidecar.routes(SHOP) for sidecar in (picky, easy)))

    server.write(*DOCUMENTS, _split("poison"))
    await until(lambda: picky.rejected and b"poison" in easy.routes(SHOP))
    (problem,) = await _problems_until(server, 1)
    assert problem["object"] == "TrafficSplit shop/poison"
    assert problem["origin"].startswith("mesh.yaml:")
    assert (problem["field"], problem["value"]) == (f"route {SHOP}", f"rejected: {WORDS}")
    assert "Service" not in problem["expected"], "bystanders"

    server.write(*DOCUMENTS, _split("poison"), _split("beside", "bank"))
    await until(lambda: all(b"split:shop/beside" in sidecar.routes(BANK) for sidecar in (picky, easy)))
    assert b"split:shop/good" in picky.routes(SHOP)
    assert picky.rejected == [(ROUTE, ResourceName(SHOP))]

    again = join(server, "one.buyer.shop", variant, _poisoned)
    await until(lambda: again.routes(SHOP) and again.routes(BANK))
    assert b"split:shop/good" in again.routes(SHOP)
    assert again.rejected == []
    assert not any(_poisoned(value) for _, value in again.sent)

    server.write(*DOCUMENTS, _split("mended"), _split("beside", "bank"))
    sidecars = (picky, easy, again)
    await until(lambda: all(b"split:shop/mended" in sidecar.routes(SHOP) for sidecar in sidecars))
    await _problems_until(server, 0)
    await server.counted("meshwright_verifications_total", 4)
    assert await server.metric("meshwright_verification_differences_total") == 0


@pytest.mark.parametrize("variant", list(Variant))
async def test_route_without_a_good_version_does_not_affect_other_routes(
    serve: Serve, join: Join, variant: Variant
) -> None:
    """The first response has all routes, so the bad one is found by halves, and the others are served."""
    services = [f"s{number}" for number in range(5)]
    others = (*map(service, services), _split("poison"))
    server = await serve(*DOCUMENTS, *others, verify=True)
    picky = join(server, "one.buyer.shop", variant, _poisoned)
    names = [f"rds-outbound.shop/{name}|80" for name in (*services, "bank")]
    await until(lambda: all(f"service:shop/{_short(name)}".encode() in picky.routes(name) for name in names))
    routes = [name for kind, name in picky.held if kind == ROUTE]
    assert len(picky.rejected) < len(routes), "they come back by halves, not one by one"
    (problem,) = await _problems_until(server, 1)
    assert problem["object"] == "TrafficSplit shop/poison"
    assert b"split:" not in picky.routes(SHOP), "what the split alone would carry is answered by nobody"


def _short(name: str) -> str:
    return name.removeprefix("rds-outbound.shop/").removesuffix("|80")


@pytest.mark.parametrize("variant", list(Variant))
async def test_cluster_of_the_last_good_route_is_kept(serve: Serve, join: Join, variant: Variant) -> None:
    """The bad route needs another cluster. The old one stays until the fixed route replaces the good one."""
    narrow = _workload("one", "buyer", "10.0.0.1").replace("ports: [", "upstreams: [UPSTREAM], ports: [")
    narrow = narrow.replace("UPSTREAM", "{service: shop, port: 80, address: 127.0.0.1, localPort: 7001}")
    documents = tuple(narrow if "name: one," in document else document for document in DOCUMENTS)
    server = await serve(*documents, _split("good"), verify=True)
    picky = join(server, "one.buyer.shop", variant, _poisoned)
    await until(lambda: b"split:shop/good" in picky.routes(SHOP))
    old = (CLUSTER, ResourceName("shop/shop-v1|18080"))
    assert old in picky.held
    server.write(*documents, _split("poison", backend="bank"))
    await _problems_until(server, 1)
    server.write(*documents, _split("mended", backend="bank"))
    await until(lambda: b"split:shop/mended" in picky.routes(SHOP) and old not in picky.held)
    pushes = (await server.ask("GET", "/debug/xds?proxy=one"))["pushes"]
    waves = [wave for push in pushes for wave in push["trigger"].get("waves", ())]
    causes = [cause["object"] for wave in waves for cause in wave["causes"]]
    assert "rejection one.buyer.shop" in causes
    assert picky.rejected == [(ROUTE, ResourceName(SHOP))]
    assert picky.removed.count(old) == 1
    assert await server.metric("meshwright_verification_differences_total") == 0


async def test_rejected_secret_is_reported_without_its_content(serve: Serve, join: Join) -> None:
    """A secret without a good version stays, because other resources need it. The problem contains no key."""
    server = await serve(*DOCUMENTS)
    picky = join(server, "one.buyer.shop", Variant.DELTA, lambda value: b"PRIVATE KEY" in value)
    await until(lambda: picky.rejected)
    result = await _problems_until(server, 2)  # the rejection is of a response, and does not name the secret
    assert [(item["object"], item["field"]) for item in result] == [
        ("trust bundle cluster.local", "secret root-cert:cluster.local"),
        ("Service shop/buyer", "secret service-cert"),
    ]
    assert "PRIVATE" not in str(result)
    assert picky.rejected == [(SECRET, ResourceName("service-cert"))]


@pytest.mark.parametrize("variant", list(Variant))
async def test_rejected_load_assignment_is_offered_to_the_next_stream(
    serve: Serve, join: Join, variant: Variant
) -> None:
    """An empty assignment replaces the rejected one, and a new stream gets the rejected version again."""
    server = await serve(*DOCUMENTS, _split("good"), verify=True, endpoint_admission="off")
    key = (ENDPOINT, ResourceName("shop/shop-v1|18080"))
    picky = join(server, "one.buyer.shop", variant, lambda value: b"10.0.0.3" in value)
    await _problems_until(server, 1)
    await until(lambda: key in picky.held)
    assert b"10.0.0.3" not in picky.held[key]
    picky.end()
    again = join(server, "one.buyer.shop", variant)
    await until(lambda: b"10.0.0.3" in again.held.get(key, b""))
    await _problems_until(server, 0)
    assert await server.metric("meshwright_verification_differences_total") == 0


@pytest.mark.parametrize("variant", list(Variant))
async def test_rejected_version_is_compared_with_the_version_in_force(
    serve: Serve, join: Join, variant: Variant
) -> None:
    """The page of pushes offers the difference, although other proxies have the rejected version."""
    server = await serve(*DOCUMENTS, _split("good"))
    picky = join(server, "one.buyer.shop", variant, _poisoned)
    easy = join(server, "two.buyer.shop", variant)
    await until(lambda: all(b"split:shop/good" in sidecar.routes(SHOP) for sidecar in (picky, easy)))
    server.write(*DOCUMENTS, _split("poison"))
    await until(lambda: picky.rejected and b"poison" in easy.routes(SHOP))
    await _problems_until(server, 1)

    pushes = (await server.ask("GET", "/debug/xds?proxy=one.buyer.shop"))["pushes"]
    (rejected,) = (push for push in pushes if push["answer"] == "nack")
    (change,) = rejected["changed"]
    asked = f"/debug/xds/diff?proxy=one.buyer.shop&type=route&name={quote(SHOP, safe='')}"
    result = await server.ask("GET", f"{asked}&from={change['from']}&to={change['to']}")
    added = [item for item in result["diff"] if item.startswith("+") and "poison" in item]
    assert (change["name"], change["comparable"], bool(added)) == (SHOP, True, True)
    back = await server.ask("GET", asked)  # the rejected version and the version in force
    assert (back["from"], back["to"]) == (change["to"], change["from"])
