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

from mesh.identity import ProxyName
from mesh.names import TrustDomain
from sidecars.envoy.bootstrap import AdsProtocol, BootstrapSettings, bootstrap
from tests.feature.identity.conftest import Server, serve
from tests.feature.rejection.permissive_shop import BASE, service
from tests.golden.envoys import HERE, RunningEnvoy, keep

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
    """Return a split for all requests; that of the name POISON is for those that fit BIG alone."""
    matches = ", matches: [{kind: HTTPRouteGroup, name: big}]" if name == POISON else ""
    return f"""
apiVersion: split.smi-spec.io/v1alpha4
kind: TrafficSplit
metadata: {{name: {name}, namespace: shop}}
spec: {{service: {apex}, backends: [{{service: v1, weight: 1}}]{matches}}}
"""


BIG = """
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: big, namespace: shop}
spec: {matches: [{name: hex, pathRegex: "/big[0-9a-f]{120}"}]}
"""
"""An expression of 248 instructions: an Envoy that is started without our runtime settings takes 100."""

DOCUMENTS = (BASE, BIG, *map(service, ("buyer", "shop", "bank", "v1")), _server("v1", f"{NET}.2"))


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

    async def count(self, stat: str) -> int:
        """Return one of its counters."""
        found = json.loads(await self._running.text(f"/stats?filter={stat}&format=json") or "{}")
        return sum(each["value"] for each in found.get("stats", ()) if "value" in each)

    async def _get(self, path: str) -> dict[str, Any]:
        return dict(json.loads(await self._running.text(path) or "{}"))


@asynccontextmanager
async def running(
    program: str,
    server: Server,
    folder: Path,
    protocol: AdsProtocol,
    name: str = "buyer.buyer.shop",
    *,
    picky: bool = False,
) -> AsyncIterator[Envoy]:
    """Run a workload's Envoy, which knows nothing of any before it; a `picky` one refuses BIG."""
    folder.mkdir()
    pair = server.certificate(name)
    for file, content in (
        ("proxy.pem", pair.chain_pem),
        ("proxy.key", pair.key.reveal()),
        ("ca.pem", server.authority.trust_bundle()),
    ):
        (folder / file).write_bytes(content)
    settings = BootstrapSettings(
        proxy_name=ProxyName.parse(name),
        trust_domain=TrustDomain("cluster.local"),
        ads_host=server.bound.ads.host,
        ads_port=server.bound.ads.port,
        certificate_file=folder / "proxy.pem",
        key_file=folder / "proxy.key",
        ca_file=folder / "ca.pem",
        admin_port=0,
        protocol=protocol,
    )
    made = json.loads(bootstrap(settings))
    if picky:
        del made["layeredRuntime"]
    (folder / "bootstrap.json").write_text(json.dumps(made))
    async with AsyncExitStack() as ends:
        session = await ends.enter_async_context(HERE.session())
        running = RunningEnvoy(folder, "", session)
        await keep(program, running, HERE, 45, ends)
        yield Envoy(running)


async def until(holds: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.02)


async def rejections(server: Server) -> list[dict[str, Any]]:
    found = (await server.ask("GET", "/debug/policies"))["problems"]
    return [each for each in found if each["code"] == "resource-rejected"]


@pytest.mark.parametrize("protocol", list(AdsProtocol))
async def test_a_rejected_route_keeps_its_last_good_version_over_a_restart(
    envoy: str, serve: Serve, tmp_path: Path, protocol: AdsProtocol
) -> None:
    """The other service's route changes meanwhile; the new Envoy is never sent the bad one."""
    server = await serve(*DOCUMENTS, _buyer(), _split("good"), verify=True)

    async def has(found: Envoy, shop: str, bank: str) -> bool:
        held = await found.routes()
        return f"split:shop/{shop}" in held.get(SHOP, "") and bank in held.get(BANK, "")

    async with running(envoy, server, tmp_path / "first", protocol, picky=True) as first:
        await until(lambda: has(first, "good", "service:shop/bank"))
        server.write(*DOCUMENTS, _buyer(), _split(POISON))
        await until(lambda: rejections(server))
        server.write(*DOCUMENTS, _buyer(), _split(POISON), _split("beside", "bank"))
        await until(lambda: has(first, "good", "split:shop/beside"))
    (problem,) = await rejections(server)
    assert (problem["object"], problem["field"]) == ("HTTPRouteGroup shop/big", "spec.matches[0]")
    assert problem["value"].startswith("rejected: regex '/big")

    nacks = await server.metric('meshwright_xds_nacks_total{type="route"}')
    async with running(envoy, server, tmp_path / "second", protocol, picky=True) as second:
        await until(lambda: has(second, "good", "split:shop/beside"))
        assert await server.metric('meshwright_xds_nacks_total{type="route"}') == nacks
        server.write(*DOCUMENTS, _buyer(), _split("mended"), _split("beside", "bank"))
        await until(lambda: has(second, "mended", "split:shop/beside"))

    async def cleared() -> bool:
        return not await rejections(server)

    await until(cleared)
    assert await server.metric("meshwright_verification_differences_total") == 0


async def test_a_route_that_was_never_good_leaves_the_others_alone(
    envoy: str, serve: Serve, tmp_path: Path
) -> None:
    """An Envoy that begins with it: it stops at the bad one, and is helped on."""
    server = await serve(*DOCUMENTS, _buyer(), _split(POISON), verify=True)
    async with running(envoy, server, tmp_path / "only", AdsProtocol.DELTA, picky=True) as only:

        async def others() -> bool:
            return "service:shop/bank" in (await only.routes()).get(BANK, "")

        await until(others)

        async def said() -> bool:
            return [each["object"] for each in await rejections(server)] == ["HTTPRouteGroup shop/big"]

        await until(said)
        await until(lambda: only.listens(7001, 7002))


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
    async with running(envoy, server, tmp_path / "only", AdsProtocol.DELTA) as only:
        await until(lambda: rejections(server))
        (problem,) = await rejections(server)
        assert problem["field"] == f"listener outbound-listener|{ADDRESS}|{taken}"
        assert problem["object"] == "Workload shop/buyer"
        await until(lambda: only.listens(7001))
        server.write(*DOCUMENTS, _buyer())

        async def mended() -> bool:
            return await only.listens(7001, 7002) and not await rejections(server)

        await until(mended)
    assert await server.metric("meshwright_verification_differences_total") == 0
