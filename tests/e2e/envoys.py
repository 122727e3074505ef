"""Real Envoys that accept all resources, or reject those that others accept."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol, BootstrapSettings, bootstrap
from tests.feature.identity.conftest import Server
from tests.golden.envoys import HERE, RunningEnvoy, keep


class Envoy:
    """One Envoy and its admin interface."""

    def __init__(self, running: RunningEnvoy) -> None:
        self._running = running

    async def routes(self) -> dict[str, str]:
        """Return the route configurations in force, by name, each as text."""
        dump = await self._get("/config_dump?resource=dynamic_route_configs")
        result = [config["route_config"] for config in dump.get("configs", []) if "route_config" in config]
        return {item["name"]: json.dumps(item) for item in result}

    async def listens(self, address: str, *ports: int) -> bool:
        """Return whether exactly these outbound listeners are active.

        A listener that waits for routes is not.
        """
        dump = await self._get("/config_dump?resource=dynamic_listeners")
        result = {config["name"] for config in dump.get("configs", []) if "active_state" in config}
        return result == {f"outbound-listener|{address}|{port}" for port in ports}

    async def count(self, stat: str) -> int:
        """Return the value of a counter."""
        result = json.loads(await self._running.text(f"/stats?filter={stat}&format=json") or "{}")
        return sum(item["value"] for item in result.get("stats", ()) if "value" in item)

    async def _get(self, path: str) -> dict[str, Any]:
        return dict(json.loads(await self._running.text(path) or "{}"))


@asynccontextmanager
async def running(
    program: str,
    server: Server,
    folder: Path,
    protocol: AdsProtocol = AdsProtocol.DELTA,
    name: str = "buyer.buyer.shop",
    *,
    picky: bool = False,
) -> AsyncIterator[Envoy]:
    """Run a workload's Envoy without earlier state; a `picky` one rejects large regular expressions."""
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
        ads=(server.bound.ads,),
        certificate_file=folder / "proxy.pem",
        key_file=folder / "proxy.key",
        ca_file=folder / "ca.pem",
        admin=HostPort("127.0.0.1", 0),
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


async def rejections(server: Server) -> list[dict[str, Any]]:
    """Return the problems for rejected resources."""
    result = (await server.ask("GET", "/debug/policies"))["problems"]
    return [item for item in result if item["code"] == "resource-rejected"]


async def status(address: str, path: str) -> int:
    """Return the status that an application gets at its sidecar's upstream, or 0 without a connection."""
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{address}{path}", allow_redirects=False) as response,
        ):
            return response.status
    except aiohttp.ClientError:
        return 0


async def explained(server: Server, path: str) -> dict[str, Any]:
    """Return the running server's explanation for a path from `buyer` to `store`."""
    query = urlencode({"from": "shop/buyer", "to": "shop/store:80", "path": path})
    return dict(await server.ask("GET", f"/debug/explain?{query}"))
