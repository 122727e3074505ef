"""Tests of the command `meshwright connectivity` with a real server, agents and Envoys."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.e2e.agent.scenes import Agent, answer, end, get
from tests.e2e.envoys import rejections, running
from tests.feature.identity.conftest import Server, serve
from tests.meshes import texts
from tests.tools.deadline import until
from tools.ports import free_port

__all__ = ["serve"]

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]

Serve = Callable[..., Awaitable[Server]]
NET = f"127.{100 + os.getpid() % 8}.{os.getpid() // 8 % 250}"
SELLER, APPLICATION, BUYER = f"{NET}.1", f"{NET}.2", f"{NET}.3"
MESH = texts.joined(
    texts.workload("seller", SELLER, app="store", spec=f"applicationAddress: {APPLICATION}"),
    texts.workload("buyer", BUYER, spec=f"upstreams: [{texts.upstream('store', BUYER, 7001)}]"),
    texts.target("buyers", "buyer", "seller", texts.http("routes")),
)
NARROW = "/only[0-9a-f]{120}"
"""Too large for an Envoy without our runtime settings."""
CALL = ("--from", "shop/buyer", "--to", "shop/store")


def routes(regex: str) -> str:
    """Return the routes of the target `buyers`."""
    return texts.route_group("routes", texts.match("those", regex))


class Buyer:
    """The caller's machine: its agent, and the command."""

    def __init__(self, server: Server, meshwright: str, envoy: str, folder: Path) -> None:
        self.server = server
        self.meshwright = meshwright
        self.envoy = envoy
        self.folder = folder
        self.status = f"{NET}.9:{free_port(f'{NET}.9')}"

    async def agent(self, ends: AsyncExitStack) -> Agent:
        """Start the agent."""
        credentials = self.folder / "credentials"
        credentials.mkdir(parents=True)
        pair = self.server.certificate("buyer.buyer.shop")
        (credentials / "proxy.key").touch(mode=0o600)
        (credentials / "proxy.key").write_bytes(pair.key.reveal())
        (credentials / "proxy.pem").write_bytes(pair.chain_pem)
        (credentials / "ca.pem").write_bytes(self.server.authority.trust_bundle())
        command = [self.meshwright, "agent", "--credentials", str(credentials)]
        command += ["--ads", str(self.server.bound.ads), "--run", str(self.folder / "run")]
        command += ["--envoy", self.envoy, "--status", self.status, "--concurrency", "1"]
        command += ["--termination-least-seconds", "0", "--termination-most-seconds", "1"]
        with (self.folder / "agent.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        made = Agent(process, self.folder, self.status, get)
        ends.push_async_callback(end, made)
        await until(made.ready)
        return made

    async def run(self, *arguments: str, given: str = "") -> tuple[int, str, str]:
        """Run the command; return its exit status, output and error output."""
        process = await asyncio.create_subprocess_exec(
            *(self.meshwright, "connectivity", "--agent", self.status, "--seconds", "20", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, complaint = await process.communicate(given.encode())
        assert process.returncode is not None
        return process.returncode, printed.decode(), complaint.decode()

    async def ask(self, path: str, *more: str) -> tuple[int, str, str]:
        """Run the command for a request of a path."""
        return await self.run("--state", str(self.server.state), *CALL, *more, "GET", path)

    async def known(self) -> bool:
        """Return whether the agent reports a connection to its control plane."""
        _, text = await get(f"http://{self.status}/healthz/status")
        return bool(json.loads(text)["control_plane"]["reached"])

    async def standing(self, side: str) -> tuple[str, ...]:
        """Return the state of the sidecars of a side, as the server reports it."""
        query = urlencode({"from": "shop/buyer", "to": "shop/store", "path": "/books"})
        result = await self.server.ask("GET", f"/debug/connectivity?{query}")
        return tuple(str(item["stands"]) for item in result[side])

    async def in_step(self) -> bool:
        """Return whether both sidecars are in step and the endpoint gets traffic."""
        sides = ("callers", "called")
        return await self.known() and [await self.standing(side) for side in sides] == [("in step",)] * 2


def verdicts(printed: str) -> list[tuple[str, str]]:
    """Return the verdict of each step, in order."""
    steps = printed.partition("\n\n")[2].splitlines()
    lines = [step for step in steps if step.strip() and not step.startswith(" ")]
    return [(line[9:27].strip(), line[:9].strip()) for line in lines]


OK = [
    (point, "ok")
    for point in ("policy", "agent", "caller's sidecar", "endpoints", "called sidecar", "request")
]


async def test_connectivity_names_the_first_step_that_differs_from_policy(
    envoy: str, meshwright: str, serve: Serve, tmp_path: Path
) -> None:
    """The mesh starts part by part, and each time the first differing step is named.

    The missing parts are a sidecar, an accepted configuration, and an application. A complete mesh agrees
    with an allowing and a refusing policy.
    """
    server = await serve(MESH, routes("/books"))
    buyer = Buyer(server, meshwright, envoy, tmp_path / "buyer")
    async with AsyncExitStack() as ends:
        code, printed, _ = await buyer.ask("/books")
        assert (code, verdicts(printed)[-1]) == (1, ("request", "unknown"))
        assert (
            "\ndiffers first at the caller's sidecar: buyer.buyer.shop (shop/buyer) is not connected"
            in printed
        )

        await buyer.agent(ends)
        await until(buyer.known)
        code, printed, complaint = await buyer.ask("/books")
        assert (code, complaint) == (1, "")
        assert printed.startswith(f"{BOOKS}: unreachable, but not because of policy; some steps")
        first = f"{SELLER}:18080 gets no traffic: its sidecar has not accepted its inbound listeners"
        assert f"\ndiffers first at the endpoints: {first}\n" in printed
        assert "503 UH" in printed
        assert "no_healthy_upstream; answered by the caller's sidecar itself)" in printed

        async with running(envoy, server, tmp_path / "seller", name="seller.seller.shop"):
            await until(buyer.in_step)
            code, printed, _ = await buyer.ask("/books")
            assert (code, verdicts(printed)) == (1, [*OK[:-1], ("request", "failed")])
            assert printed.startswith(
                f"{BOOKS}: allowed by policy, but the mesh behaves otherwise\ndiffers first at the request:"
            )
            assert "503 UF in " in printed
            assert "answered by the called sidecar itself)" in printed
            assert f"\nnext: check that the application listens at {APPLICATION}:18080\n" in printed

            async with await asyncio.start_server(answer, APPLICATION, 18080):
                await _all_is_there(buyer)
                server.write(MESH, routes("/letters"))
                await until(lambda: _refused(buyer))
                code, printed, _ = await buyer.ask("/books")
                assert (code, verdicts(printed)) == (0, OK)
                assert printed.startswith(f"{BOOKS}: refused by policy, and the mesh agrees\n")
                assert " 403 in " in printed
                assert "(no-rule-fits shop/buyers)" in printed
        await until(lambda: _stands(buyer, "called", "not connected"))
        code, printed, _ = await buyer.ask("/books", "--no-request")
        assert code == 1
        assert (
            "\ndiffers first at the called sidecar: seller.seller.shop (shop/seller) is not connected"
            in printed
        )


BOOKS = "shop/buyer to shop/store:80 GET /books"


async def _all_is_there(buyer: Buyer) -> None:
    """Assert that the call is allowed and answered; the same from printed facts."""
    where = ("--state", str(buyer.server.state), *CALL)
    code, printed, _ = await buyer.run(*where, "--json", "GET", "/books")
    result = json.loads(printed)
    assert (code, result["agrees"], result["differs_first"]) == (0, "yes", None)
    assert (result["request"]["status"], result["request"]["where"]) == (200, f"{BUYER}:7001")
    code, there, _ = await buyer.run("--facts", "-", given=printed)
    assert (code, verdicts(there)) == (0, OK)
    assert there.startswith(f"{BOOKS}: allowed by policy, and the mesh agrees\n")
    code, elsewhere, complaint = await buyer.run(*where, "--agent", "127.0.0.1:1", "GET", "/books")
    assert (code, verdicts(elsewhere)[-1]) == (2, ("request", "unknown"))
    assert complaint.startswith("meshwright: not tried: the agent at 127.0.0.1:1 does not answer")


async def _stands(buyer: Buyer, side: str, stands: str) -> bool:
    return await buyer.standing(side) == (stands,)


async def _refused(buyer: Buyer) -> bool:
    return await buyer.in_step() and (await get(f"http://{BUYER}:7001/books"))[0] == 403


async def test_connectivity_names_a_sidecar_that_rejects_or_is_behind(
    envoy: str, meshwright: str, serve: Serve, tmp_path: Path
) -> None:
    """A rejection of a real Envoy is reported with the object at fault.

    A stopped Envoy is reported as not having acknowledged the last response.
    """
    server = await serve(MESH, routes("/.*"))
    buyer = Buyer(server, meshwright, envoy, tmp_path / "buyer")
    async with AsyncExitStack() as ends:
        agent = await buyer.agent(ends)
        seller = running(envoy, server, tmp_path / "seller", name="seller.seller.shop", picky=True)
        async with seller, await asyncio.start_server(answer, APPLICATION, 18080):
            await until(buyer.in_step)
            server.write(MESH, routes(NARROW))
            await until(lambda: _rejected(server))
            await until(lambda: _settled(buyer))
            code, printed, _ = await buyer.ask(f"/only{'0' * 120}")
            assert code == 1
            first = printed.splitlines()[1]
            assert first.startswith("differs first at the called sidecar: seller.seller.shop"), printed
            assert "HTTPRouteGroup shop/routes" in first
            assert "meshwright proxy retry seller.seller.shop" in printed.splitlines()[2]

            (envoy_pid,) = agent.started()
            os.kill(envoy_pid, signal.SIGSTOP)
            try:
                server.write(MESH, routes("/.*"), texts.service("other", texts.port(81)), port=18081)
                await until(lambda: _stands(buyer, "callers", "behind"))
                code, printed, _ = await buyer.ask("/books", "--no-request")
            finally:
                os.kill(envoy_pid, signal.SIGCONT)
            assert code == 1
            assert (
                "caller's sidecar: buyer.buyer.shop (shop/buyer) has not acknowledged the last response yet"
                in printed
            )


async def _rejected(server: Server) -> bool:
    return bool(await rejections(server))


async def _settled(buyer: Buyer) -> bool:
    """Return whether the server knows the rejected object, and the seller has all other resources."""
    query = urlencode({"from": "shop/buyer", "to": "shop/store", "path": f"/only{'0' * 120}"})
    (called,) = (await buyer.server.ask("GET", f"/debug/connectivity?{query}"))["called"]
    return bool(called["lacks"]) or called["stands"] == "rejected"
