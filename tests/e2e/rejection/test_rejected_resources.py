"""Tests of resources that a real Envoy rejects: other changes go on, and the last good version is kept."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from meshwright.delivery.quarantine import record
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol
from tests.e2e.envoys import Envoy, rejections, running
from tests.feature.identity.conftest import Server, serve
from tests.meshes import texts
from tests.tools.deadline import until
from tests.tools.forked_cli import Command, Typed

__all__ = ["serve"]

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]

Serve = Callable[..., Awaitable[Server]]
NET = f"127.{92 + os.getpid() % 8}.{os.getpid() // 8 % 250}"
ADDRESS = f"{NET}.1"
SHOP, BANK = "rds-outbound.shop/shop|80", "rds-outbound.shop/bank|80"
POISON = "poison"


def _service(name: str) -> str:
    return texts.service(name, texts.port(80, 18080))


def _buyer(bank_port: int = 7002, shop_port: int = 7001) -> str:
    upstreams = (texts.upstream("shop", ADDRESS, shop_port), texts.upstream("bank", ADDRESS, bank_port))
    return texts.workload("buyer", ADDRESS, spec=f"upstreams: [{', '.join(upstreams)}]")


def _split(name: str, apex: str = "shop") -> str:
    """Return a split for requests that match a small regex, or a too large one if the name is POISON."""
    return texts.split(name, apex, ("v1", 1), group="big" if name == POISON else "small")


GROUPS = texts.joined(
    texts.route_group("small", texts.match("small", "/small")),
    texts.route_group("big", texts.match("hex", "/big[0-9a-f]{120}")),
)
"""The big one has 248 instructions: an Envoy that is started without our runtime settings takes 100."""

DOCUMENTS = (
    texts.PERMISSIVE,
    GROUPS,
    *map(_service, ("buyer", "shop", "bank", "v1")),
    texts.workload("v1", f"{NET}.2", spec="ports: [{port: 18080}]"),
)


@pytest.mark.parametrize("protocol", list(AdsProtocol))
async def test_rejected_route_keeps_its_last_good_version_when_envoy_restarts(
    envoy: str, serve: Serve, tmp_path: Path, protocol: AdsProtocol
) -> None:
    """The last accepted version is served to the new Envoy, which is never sent the rejected one.

    A change of another service's route takes effect meanwhile, and a corrected route clears the rejection.
    """
    server = await serve(*DOCUMENTS, _buyer(), _split("good"), verify=True)

    async def has(result: Envoy, shop: str, bank: str) -> bool:
        held = await result.routes()
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


async def test_route_that_was_never_accepted_does_not_block_other_routes(
    envoy: str, serve: Serve, tmp_path: Path
) -> None:
    """An Envoy that starts with a rejected route gets all other routes and listeners.

    The rejected group is reported.
    """
    server = await serve(*DOCUMENTS, _buyer(), _split(POISON), verify=True)
    async with running(envoy, server, tmp_path / "only", AdsProtocol.DELTA, picky=True) as only:

        async def others() -> bool:
            return "service:shop/bank" in (await only.routes()).get(BANK, "")

        await until(others)

        async def said() -> bool:
            return [rejection["object"] for rejection in await rejections(server)] == [
                "HTTPRouteGroup shop/big"
            ]

        await until(said)
        await until(lambda: only.listens(ADDRESS, 7001, 7002))


@pytest.fixture
def taken() -> Iterator[int]:
    """Hold a port at the workload's address, like an unrelated program."""
    with socket.create_server((ADDRESS, 0)) as held:
        yield held.getsockname()[1]


async def test_listener_that_cannot_be_bound_is_reported_for_its_workload(
    envoy: str, serve: Serve, tmp_path: Path, taken: int
) -> None:
    """A port that another program holds is reported for the Workload, with Envoy's message.

    Other listeners are served, and another port in the manifest clears the report.
    """
    server = await serve(*DOCUMENTS, _buyer(taken), verify=True)
    async with running(envoy, server, tmp_path / "only", AdsProtocol.DELTA) as only:
        await until(lambda: rejections(server))
        (problem,) = await rejections(server)
        assert problem["field"] == f"listener outbound-listener|{ADDRESS}|{taken}"
        assert problem["object"] == "Workload shop/buyer"
        bind = f"cannot bind '{ADDRESS}:{taken}': Address already in use"
        assert problem["value"].endswith(bind)
        assert "address-in-use" in problem["expected"]
        await until(lambda: only.listens(ADDRESS, 7001))
        (shown,) = (await server.ask("GET", "/debug/proxy"))["proxies"][:1]
        assert bind in shown["why"]
        assert "Workload shop/buyer" in shown["why"]
        server.write(*DOCUMENTS, _buyer())

        async def mended() -> bool:
            return await only.listens(ADDRESS, 7001, 7002) and not await rejections(server)

        await until(mended)
    assert await server.metric("meshwright_verification_differences_total") == 0


async def test_two_unbound_listeners_are_reported_and_recover_separately(
    envoy: str, serve: Serve, tmp_path: Path
) -> None:
    """Each listener's report has only the message for its own port.

    A port that is free again clears only its own report.
    """
    with socket.create_server((ADDRESS, 0)) as one, socket.create_server((ADDRESS, 0)) as two:
        ports = [item.getsockname()[1] for item in (one, two)]
        server = await serve(*DOCUMENTS, _buyer(*reversed(ports)), verify=True)

        async def said() -> dict[str, str]:
            return {rejection["field"]: rejection["value"] for rejection in await rejections(server)}

        async def both() -> bool:
            return len(await said()) == len(ports)

        async with running(envoy, server, tmp_path / "only", AdsProtocol.DELTA) as only:
            await until(both)
            for port in ports:
                words = (await said())[f"listener outbound-listener|{ADDRESS}|{port}"]
                assert words.endswith(f"cannot bind '{ADDRESS}:{port}': Address already in use")
                assert words.count("cannot bind") == 1
            one.close()
            await until(lambda: only.listens(ADDRESS, ports[0]))

            async def other_alone() -> bool:
                return [*await said()] == [f"listener outbound-listener|{ADDRESS}|{ports[1]}"]

            await until(other_alone)


@pytest.mark.parametrize("protocol", list(AdsProtocol))
async def test_listener_is_bound_automatically_when_its_port_is_free_again(
    envoy: str, serve: Serve, tmp_path: Path, protocol: AdsProtocol
) -> None:
    """The same version is offered again to the same Envoy on the same stream, with the mesh unchanged."""
    with socket.create_server((ADDRESS, 0)) as held:
        port = held.getsockname()[1]
        server = await serve(*DOCUMENTS, _buyer(port), verify=True)
        async with running(envoy, server, tmp_path / "only", protocol) as only:
            await until(lambda: rejections(server))
            await until(lambda: only.listens(ADDRESS, 7001))
            held.close()
            await until(lambda: only.listens(ADDRESS, 7001, port))
            await until(lambda: _none(server))
            assert await server.metric("meshwright_streams") <= 1


@pytest.mark.parametrize("how", ["command", "restart"])
async def test_listener_on_a_freed_port_is_bound_after_proxy_retry_or_envoy_restart(
    envoy: str, serve: Serve, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """`proxy retry` or a new Envoy gets the rejected listener at once.

    The automatic retry is delayed by a day here, so that it cannot be the cause.
    """
    monkeypatch.setattr(record, "FIRST_PAUSE_SECONDS", 86_400.0)
    monkeypatch.setattr(record, "LONGEST_PAUSE_SECONDS", 86_400.0)
    with socket.create_server((ADDRESS, 0)) as held:
        port = held.getsockname()[1]
        server = await serve(*DOCUMENTS, _buyer(port))
        async with running(envoy, server, tmp_path / "first", AdsProtocol.DELTA) as first:
            await until(lambda: rejections(server))
            await until(lambda: first.listens(ADDRESS, 7001))
            held.close()
            if how == "command":
                asked = await asyncio.to_thread(_retry, typed, server, "shop/buyer")
                assert asked == f"sent again: listener outbound-listener|{ADDRESS}|{port}\n"
                await until(lambda: first.listens(ADDRESS, 7001, port))
                await until(lambda: _none(server))
                nothing = "cannot retry: the proxy has accepted all resources\n"
                assert await asyncio.to_thread(_retry, typed, server, "buyer") == nothing
        if how == "restart":
            async with running(envoy, server, tmp_path / "second", AdsProtocol.DELTA) as second:
                await until(lambda: second.listens(ADDRESS, 7001, port))
                await until(lambda: _none(server))


def _retry(typed: Typed, server: Server, name: str) -> str:
    """Run `proxy retry` in its own process, so that its output has no log lines of the server."""
    arguments = ("proxy", "retry", name, "--state", str(server.state))
    done = typed.run(Command(server.state, arguments, {}), 60)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def _none(server: Server) -> bool:
    return not await rejections(server)
