"""Tests of a policy that Envoy rejects: only that policy is withdrawn, and the rest stays in force."""

import asyncio
import contextlib
import os
import ssl
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from certs.contract import Usage
from certs.keys.pair import issue_pair
from certs.manager import service_names
from meshwright.controller.app import run
from meshwright.controller.server import BoundAddresses
from meshwright.controller.settings.settings import load
from meshwright.controller.state_files import VERDICTS
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol
from tests.e2e.envoys import Envoy, rejections, running
from tests.feature.identity.conftest import SERVICE, Server
from tests.meshes import texts
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]

NET = f"127.{100 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
SIDECAR, APPLICATION, PORT = f"{NET}.1", f"{NET}.101", 18080
HEX = "0" * 120
NARROW, HEXER, OTHER = "narrow", "hexer", "other"

MESH = texts.joined(
    texts.service("shop", texts.port(PORT, PORT)),
    texts.workload(
        "shop",
        SIDECAR,
        spec=f"applicationAddress: {APPLICATION}, ports: [{{port: {PORT}, protocol: http}}]",
    ),
)


def _policy(big: str, narrow: str, other: str = "/other") -> tuple[str, ...]:
    """Return a policy with the permitted paths of HEXER (`big`), NARROW (`narrow`) and OTHER (`other`)."""
    paths = {HEXER: big, NARROW: narrow, OTHER: other}
    groups = (texts.route_group(f"for-{name}", texts.match("it", path)) for name, path in paths.items())
    targets = (texts.target(name, name, "shop", texts.http(f"for-{name}")) for name in paths)
    return (MESH, *groups, *targets)


GUILTY = "/big[0-9a-f]{120}"
"""248 instructions: a picky Envoy takes 100."""


class ControlPlane:
    """A control plane that can be restarted with its directories and address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "mesh").mkdir()
        self._ads = "127.0.0.1:0"

    def write(self, *documents: str) -> None:
        """Replace the manifests."""
        text = "\n---\n".join((SERVICE, *documents))
        (self._folder / "mesh" / "mesh.yaml").write_text(text)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Server]:
        """Run the control plane until the context ends."""
        stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
        anywhere = dict.fromkeys(("http_address", "debug_address"), "127.0.0.1:0")
        flags = {"mesh": self._folder / "mesh", "state": self._folder / "state", "drain_seconds": 0.2}
        settings = load(flags | anywhere | {"ads_address": self._ads, "verify": True})
        task = asyncio.create_task(run(settings, stop, started=started.set_result))
        try:
            bound: BoundAddresses = await started
            self._ads = str(bound.ads)
            server = Server(self._folder / "mesh", self._folder / "state", bound)
            yield server
            assert await server.metric("meshwright_verification_differences_total") == 0
        finally:
            stop.set()
            await task


class Callers:
    """Applications that call the sidecar directly, each with its own service certificate."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._contexts = {
            name: _context(server, folder / f"{name}.pem", name) for name in (NARROW, HEXER, OTHER)
        }

    async def status(self, name: str, path: str, method: str = "GET") -> int:
        """Return the status of a response, or 0 if the connection fails."""
        url = f"https://{SIDECAR}:{PORT}{path}"
        connector = aiohttp.TCPConnector(ssl=self._contexts[name])
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.request(method, url) as answer,
            ):
                return answer.status
        return 0

    async def are(self, *expected: int) -> bool:
        """Return whether the calls get these statuses: one by HEXER, two by NARROW, two by OTHER."""
        calls = (
            (HEXER, f"/big{HEX}", "GET"),
            (NARROW, "/only", "GET"),
            (NARROW, "/secret", "DELETE"),
            (OTHER, "/other", "GET"),
            (OTHER, "/moved", "GET"),
        )
        return [await self.status(*call) for call in calls] == [*expected]


def _context(server: Server, file: Path, account: str) -> ssl.SSLContext:
    identity = ServiceIdentity(Namespace("shop"), ServiceAccountName(account))
    names = service_names(identity, (), TrustDomain("cluster.local"))
    pair = issue_pair(server.authority, Usage.SERVICE, names, timedelta(hours=1), datetime.now(UTC))
    file.write_bytes(pair.chain_pem + pair.key.reveal())
    context = ssl.create_default_context(cadata=server.authority.trust_bundle().decode())
    context.check_hostname = False
    context.load_cert_chain(file)
    return context


@pytest.fixture
async def application() -> AsyncIterator[None]:
    """Serve every path with 200 behind the sidecar."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with AsyncExitStack() as ends:
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        ends.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, APPLICATION, PORT).start()
        yield


async def _is_named(server: Server) -> bool:
    """Return whether only the rejected object is named, with Envoy's message first, in every report."""
    result = await rejections(server)
    if [item["object"] for item in result] != ["HTTPRouteGroup shop/for-hexer"]:
        return False
    (shown,) = [e for e in (await server.ask("GET", "/debug/proxy"))["proxies"] if e["uuid"] == "shop"]
    answer = result[0]["value"].startswith(f"rejected: regex '{GUILTY}' RE2 program size of 248")
    why = shown["why"].startswith(f"route rejected: regex '{GUILTY}' RE2 program size of 248")
    return bool(answer and why and shown["why"].count("(mesh.yaml:") == 1)


@pytest.mark.usefixtures("application")
@pytest.mark.parametrize("protocol", list(AdsProtocol))
async def test_policy_that_envoy_rejects_is_withheld_while_the_rest_is_enforced(
    envoy: str, tmp_path: Path, protocol: AdsProtocol
) -> None:
    """Only the rejected group is withheld, also after the control plane and then Envoy restart.

    A change that narrows another policy at the same time takes effect, the rejected policy admits no caller,
    and a new Envoy is never sent it.
    """
    control = ControlPlane(tmp_path)
    control.write(*_policy("/none", "/only|/secret"))
    run_envoy = partial(running, envoy, protocol=protocol, name="shop.shop.shop", picky=True)
    async with AsyncExitStack() as envoys:
        async with control.running() as server:
            callers = Callers(server, tmp_path)
            await envoys.enter_async_context(run_envoy(server, tmp_path / "first"))
            await until(lambda: callers.are(403, 200, 200, 200, 403))
            control.write(*_policy(GUILTY, "/only"))
            await until(lambda: callers.are(403, 200, 403, 200, 403))
            await until(lambda: _is_named(server))
        kept = tmp_path / "state" / VERDICTS.file
        assert (stat.S_IMODE(kept.stat().st_mode), "match it" in kept.read_text()) == (0o600, True)
        async with control.running() as server:
            await until(lambda: _is_named(server))
            assert await callers.are(403, 200, 403, 200, 403)
            control.write(*_policy(GUILTY, "/only", "/moved"))
            await until(lambda: callers.are(403, 200, 403, 403, 200))
            await envoys.aclose()
            again = await envoys.enter_async_context(run_envoy(server, tmp_path / "second"))
            await until(lambda: callers.are(403, 200, 403, 403, 200))
            assert await _is_named(server)
            assert await again.count("rds-inbound.*update_rejected") == 0, "it was not even asked"
            control.write(*_policy("/big0*", "/only", "/moved"))
            await until(lambda: callers.are(200, 200, 403, 403, 200))
            assert await rejections(server) == []


@pytest.mark.usefixtures("application")
async def test_policy_that_envoy_accepts_is_enforced(envoy: str, tmp_path: Path) -> None:
    """An Envoy with the usual settings enforces the same policy.

    This is the negative control: the rejection comes from the limit of the other Envoy, and the policy is
    valid.
    """
    control = ControlPlane(tmp_path)
    control.write(*_policy(GUILTY, "/only"))
    async with control.running() as server:
        callers = Callers(server, tmp_path)
        async with running(envoy, server, tmp_path / "only", AdsProtocol.DELTA, "shop.shop.shop") as only:
            assert isinstance(only, Envoy)
            await until(lambda: callers.are(200, 200, 403, 200, 403))
        assert await rejections(server) == []


@pytest.mark.usefixtures("application")
async def test_unwritable_access_log_is_reported_and_other_changes_take_effect(
    envoy: str, tmp_path: Path
) -> None:
    """A listener whose access log cannot be opened is rejected, and its Telemetry is reported.

    A policy change of the same push takes effect.
    """
    missing = tmp_path / "missing" / "access.log"
    logs = f"""
apiVersion: policy.openservicemesh.io/v1alpha1
kind: Telemetry
metadata: {{name: logs, namespace: shop}}
spec: {{accessLog: {{file: {missing}}}}}
"""
    control = ControlPlane(tmp_path)
    control.write(*_policy("/none", "/only"))
    async with control.running() as server:
        callers = Callers(server, tmp_path)
        async with running(envoy, server, tmp_path / "only", AdsProtocol.DELTA, "shop.shop.shop"):
            await until(lambda: callers.are(403, 200, 403, 200, 403))
            control.write(*_policy("/none", "/only|/secret", "/moved"), logs)
            await until(lambda: callers.are(403, 200, 200, 403, 200))

            async def named() -> bool:
                return [rejection["object"] for rejection in await rejections(server)] == [
                    "Telemetry shop/logs"
                ]

            await until(named)
