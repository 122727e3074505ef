"""Fixtures of one Chromium for all tests here, and of a served mesh with many faults."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
import pytest_asyncio

from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire
from tests.feature.identity.conftest import Server, serving
from tests.feature.identity.grpc_machine import REPORT, call, channel
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.rejection.conftest import joining
from tests.meshes import texts
from tests.tools.browser import Browser, browsing, program, running
from xds.stream_status import Variant

EVIL = "<script>document.title='evil'</script>"
DOCUMENTS = (
    *(texts.service(name, texts.port(80, 18080)) for name in ("buyer", "shop", "shop-v1", "bank")),
    texts.workload("one", "10.0.0.1", app="buyer", account="buyer", spec="service: buyer"),
    texts.workload("two", "10.0.0.2", app="buyer", account="buyer", spec="service: buyer"),
    texts.workload(
        "a-workload-with-a-name-as-long-as-people-give-them-7d9f8b6c5d-x2x4z",
        "10.0.0.3",
        app="shop-v1",
        account="a-service-account-with-a-long-name-too",
        uuid="6f1c2f54-5b6e-4d0f-9d5c-0a4f7f6f2b11",
        spec="service: shop-v1, ports: [{port: 18080}]",
    ),
    texts.workload(
        "b1", "10.0.0.4", app="bank", account="bank", spec="service: bank, ports: [{port: 18080}]"
    ),
    texts.split("poison", "shop", ("shop-v1", 1)),
    texts.target("buyers", "buyer", "a-service-account-with-a-long-name-too", texts.http("routes")),
    texts.target("nobody", "buyer", "nobody-has-this-account", texts.http("routes")),
    texts.target("askers", "bank", "buyer", texts.http("routes")),
    texts.target("broken", "buyer", "bank", texts.http("there-is-no-such-group")),
    f'apiVersion: v1\nkind: "{EVIL}"\nmetadata: {{name: evil, namespace: shop}}\n',
    texts.service("bad", f'{{port: "{EVIL}"}}'),
    texts.workload(
        "drawn", "10.0.0.5", annotations=f"{texts.DRIVER}: document", spec="ports: [{port: 18080}]"
    ),
)
MATCHES = (texts.match("buy", "/buy"), texts.match("long", "/a/very/long/path/(of|many|parts)/.*"))
BEFORE = texts.route_group("routes", *MATCHES)
AFTER = texts.route_group("routes", *MATCHES, texts.match("more", "/more"))
ROUTE = "rds-inbound.18080"
ONE, TWO, GONE, STRANGER = "one.buyer.shop", "two.buyer.shop", "b1.bank.shop", "stranger.nowhere.shop"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the running Chromium."""
    result = program()
    if result is None and os.environ.get("MESHWRIGHT_BROWSER") != "required":
        pytest.skip("there is no Chromium: `make system` installs one")
    assert result is not None, "there is no Chromium, and it is required here"
    with running(result, tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A connection to Chromium."""
    async with browsing(chromium) as connected:
        yield connected


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """Serve a mesh with sidecars in several states.

    One rejects a route, one is in step after a changed route, one has disconnected, one has no workload, and
    one has never connected.
    """
    async with serving(tmp_path_factory.mktemp("mesh")) as start, joining() as join:
        server: Server = await start(*DOCUMENTS, BEFORE, driver_addresses="document=127.0.0.1:0", **PORTS)
        await report(server, "a")
        join(server, ONE, Variant.DELTA, lambda value: b"poison" in value)
        well = join(server, TWO, Variant.SOTW)
        join(server, STRANGER, Variant.DELTA)
        leaving = join(server, GONE, Variant.DELTA)
        async with asyncio.timeout(60):
            while not (leaving.held and well.routes(ROUTE)):
                await asyncio.sleep(0.01)
            leaving.end()
            server.write(*DOCUMENTS, AFTER)
            while not await _settled(server):
                await asyncio.sleep(0.02)
        yield server


async def report(server: Server, run: str) -> None:
    """Send a sidecar's report for one of its runs.

    One of two HTTP services fails. A TCP service has no success rate.
    """
    failing = wire.Requests(
        by_class=(0, 80, 0, 5, 15), by_time=(50, 40, 0, 0, 5, 0, 0, 0, 0, 0, 5), seconds=60
    )
    ends = (("shop", "shop", failing), ("shop", "bank", wire.Requests(by_class=(0, 9, 0, 0, 0))))
    called = [(wire.Called(namespace=space, service=name, port=80), how) for space, name, how in ends]
    edges = [
        wire.Edge(direction=wire.OUTBOUND, protocol=wire.HTTP, called=at, requests=how) for at, how in called
    ]
    db = wire.Called(namespace="shop", service=EVIL, port=5432)
    opened = wire.Connections(opened=3, sent_bytes=10)
    edges.append(wire.Edge(direction=wire.OUTBOUND, protocol=wire.TCP, called=db, connections=opened))
    coming = wire.Requests(by_class=(0, 7, 0, 0, 0))
    edges.append(
        wire.Edge(direction=wire.INBOUND, protocol=wire.HTTP, called=wire.Called(port=18080), requests=coming)
    )
    report_request = wire.ReportRequest(run=run, number=1, seconds=10, edges=edges)
    async with channel(server, "renewal", server.certificate(TWO)) as port:
        assert (await call(port, REPORT, report_request.SerializeToString())).code is grpc.StatusCode.OK


async def _settled(server: Server) -> bool:
    shown = (await server.ask("GET", "/debug/proxy"))["proxies"]
    result: dict[str, Any] = {item["cn"]: item for item in shown}
    wrong = (await server.ask("GET", "/debug/policies"))["problems"]
    pushes = (await server.ask("GET", f"/debug/xds?proxy={TWO}"))["pushes"]
    states = [result.get(name, {}).get("state") for name in (ONE, TWO, GONE, STRANGER)]
    return (
        states == ["connected", "connected", "disconnected", "connected"]
        and "rejected" in result[ONE]["why"]
        and set(result[TWO]["sync"].values()) == {"synced"}
        and any(item["code"] == "resource-rejected" for item in wrong)
        and any(changed["name"] == ROUTE for push in pushes for changed in push["changed"])
    )
