"""A real Envoy that rejects a resource: all else goes on, and a restarted one gets the last good version."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from catalog.proxy import OutboundService
from mesh.identity import ProxyName
from mesh.names import TrustDomain
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from sidecars.envoy import names, routes
from sidecars.envoy.bootstrap import AdsProtocol, BootstrapSettings, bootstrap
from tests.feature.identity.conftest import Server, serve
from tests.feature.rejection.permissive_shop import BASE, service
from tests.golden.envoys import HERE, RunningEnvoy, keep
from xds.resource import Resource, encode

__all__ = ["serve"]

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]

Serve = Callable[..., Awaitable[Server]]
NET = f"127.{92 + os.getpid() % 8}.{os.getpid() // 8 % 250}"
ADDRESS = f"{NET}.1"
SHOP, BANK = "rds-outbound.shop/shop|80", "rds-outbound.shop/bank|80"
POISON = "poison"


def _server(name: str, address: str) -> str:
    return f"""
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}
spec: {{address: {address}, uuid: {name}, serviceAccount: {name}, ports: [{{port: 18080}}]}}
"""


def _buyer(bank_port: int = 7002) -> str:
    return f"""
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: buyer, namespace: shop, labels: {{app: buyer}}}}
spec:
  address: {ADDRESS}
  uuid: buyer
  serviceAccount: buyer
  upstreams:
    - {{service: shop, port: 80, address: {ADDRESS}, localPort: 7001}}
    - {{service: bank, port: 80, address: {ADDRESS}, localPort: {bank_port}}}
"""


def _split(name: str, apex: str = "shop") -> str:
    return f"""
apiVersion: split.smi-spec.io/v1alpha4
kind: TrafficSplit
metadata: {{name: {name}, namespace: shop}}
spec: {{service: {apex}, backends: [{{service: v1, weight: 1}}]}}
"""


DOCUMENTS = (BASE, *map(service, ("buyer", "shop", "bank", "v1")), _server("v1", f"{NET}.2"))


class Envoy:
    """One Envoy and its admin interface."""

    def __init__(self, running: RunningEnvoy) -> None:
        self._running = running

    async def routes(self) -> dict[str, str]:
        """Return the route configurations in force, by name, each as text."""
        dump = await self._get("/config_dump?resource=dynamic_route_configs")
        found = [each["route_config"] for each in dump.get("configs", []) if "route_config" in each]
        return {each["name"]: json.dumps(each) for each in found}

    async def listens(self, *ports: int) -> bool:
        """Say whether the listeners in force are those of these ports: such as wait for routes are not."""
        dump = await self._get("/config_dump?resource=dynamic_listeners")
        found = {each["name"] for each in dump.get("configs", []) if "active_state" in each}
        return found == {f"outbound-listener|{ADDRESS}|{port}" for port in ports}

    async def _get(self, path: str) -> dict[str, Any]:
        return dict(json.loads(await self._running.text(path) or "{}"))


@asynccontextmanager
async def _running(program: str, server: Server, folder: Path, protocol: AdsProtocol) -> AsyncIterator[Envoy]:
    """Run the buyer's Envoy, which knows nothing of any before it."""
    folder.mkdir()
    pair = server.certificate("buyer.buyer.shop")
    for file, content in (
        ("proxy.pem", pair.chain_pem),
        ("proxy.key", pair.key.reveal()),
        ("ca.pem", server.authority.trust_bundle()),
    ):
        (folder / file).write_bytes(content)
    settings = BootstrapSettings(
        proxy_name=ProxyName.parse("buyer.buyer.shop"),
        trust_domain=TrustDomain("cluster.local"),
        ads_host=server.bound.ads.host,
        ads_port=server.bound.ads.port,
        certificate_file=folder / "proxy.pem",
        key_file=folder / "proxy.key",
        ca_file=folder / "ca.pem",
        admin_port=0,
        protocol=protocol,
    )
    (folder / "bootstrap.json").write_text(bootstrap(settings))
    async with AsyncExitStack() as ends:
        session = await ends.enter_async_context(HERE.session())
        running = RunningEnvoy(folder, "", session)
        await keep(program, running, HERE, 45, ends)
        yield Envoy(running)


async def _until(holds: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.02)


async def _rejected(server: Server) -> list[dict[str, Any]]:
    found = (await server.ask("GET", "/debug/policies"))["problems"]
    return [each for each in found if each["code"] == "resource-rejected"]


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have routes of a split of that name made so that no Envoy takes them: two hosts claim everything."""
    outbound = routes.outbound

    def made(service: OutboundService) -> Resource:
        if not any(each.split is not None and each.split.name == POISON for each in service.routes):
            return outbound(service)
        hosts = [route_components_pb2.VirtualHost(name=name, domains=["*"]) for name in (POISON, "other")]
        return encode(route_pb2.RouteConfiguration(name=names.outbound_routes(service), virtual_hosts=hosts))

    monkeypatch.setattr(routes, "outbound", made)


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("protocol", list(AdsProtocol))
async def test_a_rejected_route_keeps_its_last_good_version_over_a_restart(
    envoy: str, serve: Serve, tmp_path: Path, protocol: AdsProtocol
) -> None:
    """The other service's route changes meanwhile; the new Envoy is never sent the bad one."""
    server = await serve(*DOCUMENTS, _buyer(), _split("good"), verify=True)

    async def has(found: Envoy, shop: str, bank: str) -> bool:
        held = await found.routes()
        return f"split:shop/{shop}" in held.get(SHOP, "") and bank in held.get(BANK, "")

    async with _running(envoy, server, tmp_path / "first", protocol) as first:
        await _until(lambda: has(first, "good", "service:shop/bank"))
        server.write(*DOCUMENTS, _buyer(), _split(POISON))
        await _until(lambda: _rejected(server))
        server.write(*DOCUMENTS, _buyer(), _split(POISON), _split("beside", "bank"))
        await _until(lambda: has(first, "good", "split:shop/beside"))
    (problem,) = await _rejected(server)
    assert (problem["object"], problem["field"]) == (f"TrafficSplit shop/{POISON}", f"route {SHOP}")
    assert "domain" in problem["value"]

    nacks = await server.metric('meshwright_xds_nacks_total{type="route"}')
    async with _running(envoy, server, tmp_path / "second", protocol) as second:
        await _until(lambda: has(second, "good", "split:shop/beside"))
        assert await server.metric('meshwright_xds_nacks_total{type="route"}') == nacks
        server.write(*DOCUMENTS, _buyer(), _split("mended"), _split("beside", "bank"))
        await _until(lambda: has(second, "mended", "split:shop/beside"))

    async def cleared() -> bool:
        return not await _rejected(server)

    await _until(cleared)
    assert await server.metric("meshwright_verification_differences_total") == 0


@pytest.mark.usefixtures("poison")
async def test_a_route_that_was_never_good_leaves_the_others_alone(
    envoy: str, serve: Serve, tmp_path: Path
) -> None:
    """An Envoy that begins with it: it stops at the bad one, and is helped on."""
    server = await serve(*DOCUMENTS, _buyer(), _split(POISON), verify=True)
    async with _running(envoy, server, tmp_path / "only", AdsProtocol.DELTA) as only:

        async def others() -> bool:
            return "service:shop/bank" in (await only.routes()).get(BANK, "")

        await _until(others)

        async def said() -> bool:
            return [each["field"] for each in await _rejected(server)] == [f"route {SHOP}"]

        await _until(said)
        await _until(lambda: only.listens(7001, 7002))


@pytest.fixture
def taken() -> Iterator[int]:
    """Hold a port at the workload's address, as a program that nobody thought of would."""
    with socket.create_server((ADDRESS, 0)) as held:
        yield held.getsockname()[1]


async def test_a_listener_that_cannot_be_bound_is_traced_to_its_workload(
    envoy: str, serve: Serve, tmp_path: Path, taken: int
) -> None:
    """Nothing is wrong with the manifests but that the machine has the port in use; the rest is served."""
    server = await serve(*DOCUMENTS, _buyer(taken), verify=True)
    async with _running(envoy, server, tmp_path / "only", AdsProtocol.DELTA) as only:
        await _until(lambda: _rejected(server))
        (problem,) = await _rejected(server)
        assert problem["field"] == f"listener outbound-listener|{ADDRESS}|{taken}"
        assert problem["object"] == "Workload shop/buyer"
        await _until(lambda: only.listens(7001))
        server.write(*DOCUMENTS, _buyer())

        async def mended() -> bool:
            return await only.listens(7001, 7002) and not await _rejected(server)

        await _until(mended)
    assert await server.metric("meshwright_verification_differences_total") == 0
