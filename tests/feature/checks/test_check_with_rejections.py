"""Tests of `meshwright check` with a proxy that rejects a resource and a proxy without a workload."""

import asyncio
from collections.abc import Awaitable, Callable

from meshwright.cli.checking.judgements.check import Check, Status
from meshwright.cli.checking.server import running_server as running
from tests.feature.identity.conftest import Server
from tests.feature.rejection.conftest import WORDS, Join
from tests.meshes import texts
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Server]]
DOCUMENTS = (
    texts.PERMISSIVE,
    *(texts.service(name, texts.port(80, 18080)) for name in ("buyer", "shop", "shop-v1")),
    texts.workload(
        "one", "10.0.0.1", app="buyer", account="buyer", spec="service: buyer, ports: [{port: 18080}]"
    ),
    texts.workload(
        "v1", "10.0.0.3", app="shop-v1", account="s", spec="service: shop-v1, ports: [{port: 18080}]"
    ),
)


def _split(name: str) -> str:
    return texts.split(name, "shop", ("shop-v1", 1))


async def _checks(server: Server) -> dict[str, Check]:
    def found() -> dict[str, Check]:
        return {check.name: check for check in running.checks(running.read_paths(server.state))}

    return await asyncio.to_thread(found)


async def _until(server: Server, name: str, status: Status, said: str = "") -> Check:
    async with asyncio.timeout(60):
        while (check := (await _checks(server))[name]).status is not status or said not in check.finding:
            await asyncio.sleep(0.01)
    return check


async def test_check_reports_rejections_and_proxies_without_configuration(serve: Serve, join: Join) -> None:
    """A rejection is named with proxy, type, object and Envoy's words, until the resource is good again.

    A connected proxy without a workload is a failure.
    """
    server = await serve(*DOCUMENTS, _split("good"))
    join(server, "one.buyer.shop", Variant.DELTA, lambda value: b"poison" in value)
    await _until(server, "rejections", Status.OK)
    server.write(*DOCUMENTS, _split("poison"))
    check = await _until(server, "rejections", Status.FAILED, WORDS)
    assert check.finding.startswith("rejected by one.buyer.shop (route): ")
    assert "TrafficSplit shop/poison" in check.finding
    server.write(*DOCUMENTS, _split("good"))
    await _until(server, "rejections", Status.OK)

    join(server, "nobody.buyer.shop", Variant.DELTA)
    check = await _until(server, "proxies", Status.FAILED)
    assert check.finding.startswith("connected, but without configuration: nobody.buyer.shop")
