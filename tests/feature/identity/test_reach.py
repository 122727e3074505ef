"""Tests of the reasons why an agent cannot reach its control plane, each in its own situation."""

import asyncio
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import web

from certs.contract import Names, Usage
from certs.keys.pair import Pair, issue_pair
from certs.state.files import write_private
from meshwright.agent.certificates import certificate, trust_domain
from meshwright.agent.reach.client import DISCOVERY, REASON
from meshwright.agent.reach.observations import ReachObservation
from meshwright.agent.reach.probing import ReachTarget, observe
from meshwright.agent.reach.reasons import Reason, UnreachableReason, unreached
from meshwright.controller import delivery as delivering
from meshwright.mesh.host_port import HostPort
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import CLIENT, WORKLOAD, pair
from tests.feature.identity.test_identity import workload
from tests.unit.agent.issued_credentials import authority, write_credentials, write_server_certificate
from tools.ports import free_port
from xds import discovery as services

NAME = "one.store.shop"
PATIENCE = 20.0
Serve = Callable[..., Any]


def _credentials(server: Any, shown: Pair, out: Path) -> Path:
    """Write a proxy's three files."""
    out.mkdir(exist_ok=True)
    write_private(out / "proxy.pem", shown.chain_pem)
    write_private(out / "proxy.key", shown.key.reveal())
    write_private(out / "ca.pem", server.authority.trust_bundle())
    return out


async def _why(
    at: str, credentials: Path, seconds: float = PATIENCE
) -> tuple[UnreachableReason | None, ReachObservation]:
    shown, domain = certificate(credentials / "proxy.pem"), trust_domain(credentials)
    seen = await observe(ReachTarget(HostPort.parse(at), credentials, shown, domain, seconds))
    return unreached(seen), seen


async def _found(at: str, credentials: Path, seconds: float = PATIENCE) -> UnreachableReason:
    """Return the reason. The message must be one line with the address and the next step."""
    why, _ = await _why(at, credentials, seconds)
    assert why is not None
    assert at in why.clause or why.clause.startswith("this proxy's certificate") or "the name " in why.clause
    assert "\n" not in str(why)
    assert why.do
    return why


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """Credentials of a mesh without a running server."""
    write_credentials(tmp_path / "other", tmp_path / "credentials")
    return tmp_path / "credentials"


async def test_reachable_server_has_no_problem_and_reveals_the_clock_difference(
    serve: Serve, tmp_path: Path
) -> None:
    """The check finds no problem and opens no discovery stream. This is the positive control."""
    server = await serve(workload("one"))
    files = _credentials(server, server.certificate(NAME), tmp_path / "files")
    why, seen = await _why(str(server.bound.ads), files)
    assert why is None
    assert seen.clock_ahead is not None
    assert abs(seen.clock_ahead) < timedelta(seconds=30)
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_refused_proxy_learns_its_reason(serve: Serve, tmp_path: Path) -> None:
    """Revoked and unissued certificates, another service, and an unknown workload have distinct reasons."""
    server = await serve(workload("one"))
    at = str(server.bound.ads)
    revoked = server.certificate(NAME)
    await server.ask("POST", "/certs/revoke", {"serial": revoked.leaf.serial})
    cases = {
        Reason.REVOKED: revoked,
        Reason.NOT_ISSUED: server.certificate(NAME, issued=False),
        Reason.OTHER_WORKLOAD: server.certificate("one.another.shop"),
        Reason.WORKLOAD_UNKNOWN: server.certificate("nobody.store.shop"),
    }
    for reason, shown in cases.items():
        why = await _found(at, _credentials(server, shown, tmp_path / reason.value))
        assert (why.reason, shown.leaf.serial in why.clause or "nobody.store.shop" in why.clause) == (
            reason,
            True,
        )
    assert (DISCOVERY, REASON) == (services.AGGREGATED, services.REASON)


async def test_failed_translation_is_not_reported_as_an_unknown_workload(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy whose configuration cannot be computed gets the reason NOT_TRANSLATED."""

    def fails(_: object) -> None:
        raise ValueError("nobody has foreseen this")

    monkeypatch.setattr(delivering, "translation", lambda *_, **__: fails)
    server = await serve(workload("one"))
    shown = server.certificate(NAME)
    async with server.client(shown) as client:
        await client.ask(NAME)
        assert await server.counted("meshwright_group_failures_total", 1) == 1
        why = await _found(str(server.bound.ads), _credentials(server, shown, tmp_path / "files"))
    assert why.reason is Reason.NOT_TRANSLATED


async def test_removed_workload_is_reported_as_unknown(serve: Serve, tmp_path: Path) -> None:
    """The proxy's stream ends like that of a workload that never existed."""
    server = await serve(workload("one"), held_seconds=0.2)
    shown = server.certificate(NAME)
    async with server.client(shown) as client:
        await client.ask(NAME)
        await client.names()
        server.write(workload("two", host=2))
        assert await client.ended() == (
            grpc.StatusCode.UNAVAILABLE,
            "the configuration of this proxy is not ready yet",
        )
    why = await _found(str(server.bound.ads), _credentials(server, shown, tmp_path / "files"))
    assert why.reason is Reason.WORKLOAD_UNKNOWN


async def test_certificate_outside_its_validity_is_reported_with_the_difference(
    serve: Serve, tmp_path: Path
) -> None:
    """The server only closes the connection, so the agent compares the certificate with its own clock."""
    server = await serve(workload("one"))
    at = str(server.bound.ads)
    expired = server.certificate(NAME, lived=timedelta(days=3))
    why = await _found(at, _credentials(server, expired, tmp_path / "expired"))
    assert (why.reason, "2 d 2" in why.clause) == (Reason.EXPIRED, True), why
    early = server.certificate(NAME, lived=-timedelta(hours=5))
    why = await _found(at, _credentials(server, early, tmp_path / "early"))
    assert why.reason is Reason.NOT_YET_VALID
    assert "the clock of this machine is behind by 4 h" in why.do, why


async def test_other_mesh_is_reported_from_either_side(
    serve: Serve, credentials: Path, tmp_path: Path
) -> None:
    """The server has a CA that is not in ca.pem, or the server does not accept our certificate."""
    server = await serve(workload("one"))
    at = str(server.bound.ads)
    why = await _found(at, credentials)
    assert (why.reason, "for ads that was not issued by a CA in ca.pem" in why.clause) == (
        Reason.SERVER_OF_ANOTHER_CA,
        True,
    ), why
    both = tmp_path / "both"
    shutil.copytree(credentials, both)
    write_private(both / "ca.pem", server.authority.trust_bundle())
    why = await _found(at, both)
    assert (why.reason, "`handshakes failed`" in why.do) == (Reason.NOT_ACCEPTED, True)


async def test_closed_port_and_unknown_name_are_reported(credentials: Path) -> None:
    """The first steps of a connection have their own reasons."""
    closed = f"127.0.0.1:{free_port('127.0.0.1')}"
    assert (await _found(closed, credentials)).reason is Reason.PORT_CLOSED
    assert (await _found("control.invalid:15128", credentials)).reason is Reason.NAME_NOT_FOUND
    assert (await _found("control..example:15128", credentials)).reason is Reason.NAME_NOT_FOUND


@asynccontextmanager
async def _listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    at = f"127.0.0.1:{free_port('127.0.0.1')}"
    served = await asyncio.start_server(serve, *at.split(":"), ssl=tls)
    try:
        yield at
    finally:
        served.close()


async def _greets(words: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send some bytes, and wait for the end of the other side."""
    writer.write(words)
    await reader.read(-1)
    writer.close()


async def _hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.close()


async def test_other_service_on_the_port_is_reported(credentials: Path) -> None:
    """An HTTP server, a greeting, a silent server, and one that hangs up have distinct messages."""
    app = web.Application()
    runner = web.AppRunner(app)
    await runner.setup()
    at = f"127.0.0.1:{free_port('127.0.0.1')}"
    await web.TCPSite(runner, "127.0.0.1", int(at.rpartition(":")[2])).start()
    try:
        why = await _found(at, credentials)
    finally:
        await runner.cleanup()
    assert (why.reason, f"an HTTP server is at {at}, which does not use TLS" in why.clause) == (
        Reason.ANOTHER_SERVICE,
        True,
    ), why
    assert str(HTTPStatus.BAD_REQUEST.value) in why.clause

    async with _listening(partial(_greets, b"SSH-2.0-OpenSSH_9.7\r\n")) as at:
        why = await _found(at, credentials)
    assert (why.reason, "SSH-2.0-OpenSSH" in why.clause) == (Reason.ANOTHER_SERVICE, True), why
    async with _listening(partial(_greets, b"hi")) as at:
        why = await _found(at, credentials, 0.5)
    assert (why.reason, "'hi'" in why.clause) == (Reason.ANOTHER_SERVICE, True), why
    async with _listening(partial(_greets, b"")) as at:
        why = await _found(at, credentials, 0.5)
    assert (why.reason, "sends nothing" in why.clause) == (Reason.NO_HANDSHAKE, True), why
    async with _listening(_hangs_up) as at:
        why = await _found(at, credentials)
    assert (why.reason, "closes them" in why.clause) == (Reason.NO_HANDSHAKE, True), why


async def test_other_server_of_the_mesh_is_reported(credentials: Path, tmp_path: Path) -> None:
    """A server with the control plane's name is recognised by its protocol, another by its name."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(write_server_certificate(tmp_path / "other"))
    async with _listening(partial(_greets, b"HTTP/1.1 400 Bad Request\r\n\r\n"), tls) as at:
        why = await _found(at, credentials)
    assert (why.reason, "not a control plane" in why.clause) == (Reason.ANOTHER_SERVICE, True), why

    tls.load_cert_chain(_server_certificate(tmp_path / "other", "web.example"))
    async with _listening(partial(_greets, b""), tls) as at:
        why = await _found(at, credentials)
    assert (why.reason, "not for ads.cluster.local" in why.clause) == (Reason.SERVER_OF_ANOTHER_NAME, True), (
        why
    )


def _server_certificate(state: Path, name: str, age: timedelta = timedelta()) -> Path:
    """Write a server certificate of one day and the given age, with its key."""
    names = Names(name.partition(".")[0], dns_names=(name,))
    made = issue_pair(authority(state), Usage.SERVER, names, timedelta(days=1), datetime.now(UTC) - age)
    (state / f"{name}.pem").write_bytes(made.chain_pem + made.key.reveal())
    return state / f"{name}.pem"


@pytest.mark.parametrize(
    ("age", "reason", "word"),
    [
        (timedelta(days=9), Reason.SERVER_EXPIRED, "ahead by 8 d"),
        (-timedelta(hours=9), Reason.SERVER_NOT_YET_VALID, "behind by 8 h"),
    ],
)
async def test_clock_that_contradicts_the_servers_certificate_is_reported(
    credentials: Path, tmp_path: Path, age: timedelta, reason: Reason, word: str
) -> None:
    """The advice says by how much the machine's clock is wrong at least."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(_server_certificate(tmp_path / "other", "ads.cluster.local", age))
    async with _listening(partial(_greets, b""), tls) as at:
        why = await _found(at, credentials)
    assert (why.reason, word in why.do) == (reason, True), why


@pytest.mark.root
@pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces())
def test_dropped_rejected_and_unroutable_packets_are_reported(credentials: Path) -> None:
    """A firewall that drops, a firewall that rejects, and a missing route have distinct reasons."""
    v4 = socket.AF_INET
    with pair() as (there, here):
        at = f"{WORKLOAD[v4]}:15128"

        def why(to: str) -> UnreachableReason:
            return here.do(lambda: asyncio.run(_found(to, credentials, 0.5)))

        assert why(at).reason is Reason.PORT_CLOSED
        there.run("iptables", "-A", "INPUT", "-p", "tcp", "--dport", "15128", "-j", "DROP")
        unreachable_reason = why(at)
        assert (unreachable_reason.reason, "0.5 s" in unreachable_reason.clause) == (
            Reason.NO_ANSWER,
            True,
        ), unreachable_reason
        there.run("iptables", "-F")
        reject = ("-j", "REJECT", "--reject-with", "icmp-host-prohibited")
        there.run("iptables", "-A", "INPUT", "-s", CLIENT[v4], *reject)
        assert why(at).reason is Reason.NO_ROUTE
        here.run("ip", "route", "delete", "default")
        assert why("192.0.2.1:15128").reason is Reason.NO_ROUTE
