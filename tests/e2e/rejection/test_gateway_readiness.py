"""Tests of the readiness of a gateway's agent, with a real server, agent and Envoy.

Another program holds a port of the Gateway, so Envoy rejects its listener, and the server withdraws it.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.agent.scenes import Agent, end, get
from tests.e2e.envoys import rejections
from tests.feature.identity.conftest import Server, serve
from tests.meshes import texts
from tests.tools.deadline import until
from tools.ports import free_port

__all__ = ["serve"]

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]

Serve = Callable[..., Awaitable[Server]]
NET = f"127.{82 + os.getpid() % 8}.{os.getpid() // 8 % 250}"
ADDRESS, STATUS = f"{NET}.1", f"{NET}.9"
CLASS = """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: meshwright}
spec: {controllerName: meshwright.dev/gateway-controller}
"""
PROXY = f"""\
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: edge-1, namespace: shop}}
spec: {{address: {ADDRESS}, serviceAccount: edge, uuid: edge-1, gateway: edge}}
"""


def _gateway(**ports: int) -> str:
    listeners = ", ".join(
        f"{{name: {name}, port: {port}, protocol: HTTP}}" for name, port in sorted(ports.items())
    )
    return (
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: shop}\n"
        f"spec: {{gatewayClassName: meshwright, listeners: [{listeners}]}}\n"
    )


@asynccontextmanager
async def _agent(envoy: str, meshwright: str, server: Server, folder: Path) -> AsyncIterator[Agent]:
    """Run the agent of the gateway's proxy."""
    credentials = folder / "credentials"
    credentials.mkdir(parents=True)
    pair = server.certificate("edge-1.edge.shop")
    (credentials / "proxy.key").touch(mode=0o600)
    (credentials / "proxy.key").write_bytes(pair.key.reveal())
    (credentials / "proxy.pem").write_bytes(pair.chain_pem)
    (credentials / "ca.pem").write_bytes(server.authority.trust_bundle())
    status = f"{STATUS}:{free_port(STATUS)}"
    with (folder / "agent.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(meshwright, "agent", "--credentials", str(credentials), "--ads", str(server.bound.ads)),
            *("--run", str(folder / "run"), "--envoy", envoy, "--status", status, "--concurrency", "1"),
            *("--termination-least-seconds", "0", "--termination-most-seconds", "1"),
            stdout=log,
            stderr=log,
        )
    async with AsyncExitStack() as ends:
        agent = Agent(process, folder, status, get)
        ends.push_async_callback(end, agent)
        yield agent


async def _reasons(agent: Agent) -> str:
    return (await get(f"{agent.status}/healthz/ready"))[1].strip()


def _lacking(port: int) -> str:
    return (
        f"listener {ADDRESS}:{port} of Gateway shop/edge is not in use, and Envoy rejected an update: "
        "`meshwright proxies` on the control plane has the reason"
    )


async def test_gateway_is_ready_when_all_its_listeners_are_in_use(
    envoy: str, meshwright: str, serve: Serve, tmp_path: Path
) -> None:
    """A port that another program holds keeps it from becoming ready, and another port mends that.

    A listener that is rejected later does not make the gateway unready, because the others still serve.
    """
    free, later = free_port(ADDRESS), free_port(ADDRESS)
    with socket.create_server((ADDRESS, 0)) as held:
        taken = held.getsockname()[1]
        server = await serve(texts.joined(CLASS, PROXY), _gateway(one=free, two=taken), verify=True)
        async with _agent(envoy, meshwright, server, tmp_path / "agent") as agent:

            async def says(words: str) -> bool:
                return await _reasons(agent) == words

            await until(lambda: says(_lacking(taken)))
            (problem,) = await rejections(server)
            assert problem["object"] == "Workload shop/edge-1"
            assert (
                "at the moment (address-in-use); it serves listener two "
                f"(port {taken}) of Gateway shop/edge. It is retried" in problem["expected"]
            )
            server.write(texts.joined(CLASS, PROXY), _gateway(one=free, two=later))
            await until(agent.ready)
            server.write(texts.joined(CLASS, PROXY), _gateway(one=free, two=later, three=taken))
            await until(lambda: rejections(server))
            assert await agent.ready()


async def test_gateway_without_a_listener_in_force_is_ready(
    envoy: str, meshwright: str, serve: Serve, tmp_path: Path
) -> None:
    """The proxy has all that it was sent; the Gateway's status and problems say what is missing.

    Otherwise one Gateway with a bad certificate would keep a rollout of its Pods waiting.
    """
    server = await serve(texts.joined(CLASS, PROXY), verify=True)
    async with _agent(envoy, meshwright, server, tmp_path / "agent") as agent:
        await until(agent.ready)
        result = await server.ask("GET", "/debug/policies")
        assert "MW2180" in [item["code"] for item in result["problems"]]
