"""Tests of the port at which servers ask each other: who is answered, what is permitted, and time limits."""

import asyncio
import json
import socket
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from certs.gateway import gateway_pair
from certs.keys.pair import Pair
from certs.keys.replica import replica_host, replica_pair
from certs.ledger.sqlite import SqliteLedger
from certs.manager import CertificateManager
from certs.proxy import issue_proxy
from certs.state.pair_files import PairFiles
from meshwright.admin.replicas.peers import FACTS, PULSE, RETRY, REVOCATIONS, SERVER, PeerAnswers
from meshwright.admin.replicas.pulse import ServerFacts, decode_pulse, decode_server
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.records.contract import ReplicaId
from meshwright.replicas.state import ReplicaState
from tests.unit.admin.conftest import NAME, FakeReading
from tests.unit.controller.sharing.peers.some_servers import DOMAIN, SomeServers, now, some_servers


async def _status(servers: SomeServers, name: str, chain: bytes, key: bytes, method: str, path: str) -> int:
    """Send a request with this certificate; return the status, or 0 if TLS fails."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.request(
                method,
                f"https://{servers[name].at}{path}",
                ssl=servers.client_context(chain, key),
                data=b"{}",
            ) as response:
                return response.status
        except aiohttp.ClientError:
            return 0


async def test_servers_ask_each_other(tmp_path: Path) -> None:
    """Each gets the facts of exactly the others."""
    async with some_servers(tmp_path, {name: FakeReading() for name in "abc"}) as servers:
        servers["a"].facts = ServerFacts(1.5, {"trust_domain": "x"})
        answers = await servers["b"].client.ask(SERVER)
        assert {name: decode_server(of.content) for name, of in answers.answers.items()} == {
            "a": ServerFacts(1.5, {"trust_domain": "x"}),
            "c": ServerFacts(),
        }
        assert answers.silent == {}
        assert set((await servers["b"].client.ask(SERVER, only="c")).answers) == {"c"}
        assert await servers["b"].client.ask(SERVER, only="b") == PeerAnswers()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
async def test_both_address_families(tmp_path: Path, host: str) -> None:
    """The announced address may be of IPv4 or IPv6; the default listens on both."""
    if host != "127.0.0.1" and not socket.has_dualstack_ipv6():
        pytest.skip("the machine has no IPv6")
    async with some_servers(tmp_path, {"a": FakeReading(), "b": FakeReading()}, host=host) as servers:
        port = servers["b"].at.port if servers["b"].at else 0
        for reached in ("127.0.0.1", "::1") if host == "::" else (host,):
            servers["b"].membership.set_facts(peer_address=str(HostPort(reached, port)))
            servers.hear()
            assert set((await servers["a"].client.ask(PULSE)).answers) == {"b"}


async def test_pulse_names_connected_proxies(tmp_path: Path, reading: FakeReading) -> None:
    """Other servers learn who is connected."""
    async with some_servers(tmp_path, {"a": FakeReading(), "b": reading}) as servers:
        answers = await servers["a"].client.ask(PULSE)
        assert decode_pulse(answers.answers["b"].content).connected == (str(NAME),)


async def test_only_servers_are_answered(tmp_path: Path) -> None:
    """A proxy, a sidecar's service and a gateway have certificates of our CA, and get nothing."""
    async with some_servers(tmp_path, {"a": FakeReading()}) as servers:
        authority = servers.authority
        with SqliteLedger.open(tmp_path / "ledger") as ledger:
            proxy = issue_proxy(authority, ledger, ProxyName.parse("replica.b.c"), timedelta(days=1), now())
        identity = ServiceIdentity(Namespace("shop"), ServiceAccountName("store"))
        manager = CertificateManager(authority, PairFiles(tmp_path), timedelta(days=1), lambda: 0.0)
        service = manager.ensure(identity, (replica_host("b", DOMAIN),), now())
        gateway = gateway_pair(authority, (replica_host("b", DOMAIN),), timedelta(days=1), now())
        for chain, key in (
            (proxy.chain_pem, proxy.key),
            (service.chain_pem, service.key),
            (gateway.chain_pem, gateway.key),
        ):
            for method, path in (("GET", FACTS), ("GET", "/api/v1/proxies"), ("POST", REVOCATIONS)):
                assert await _status(servers, "a", chain, key.reveal(), method, path) == 403
        assert servers["a"].revoked == []


async def test_client_without_our_ca_fails_in_tls(tmp_path: Path) -> None:
    """A server of another mesh does not get as far as a request."""
    async with (
        some_servers(tmp_path / "one", {"a": FakeReading()}) as servers,
        some_servers(tmp_path / "other", {"b": FakeReading()}) as others,
    ):
        pair = replica_pair(others.authority, "a", now())
        assert await _status(servers, "a", pair.chain_pem, pair.key.reveal(), "GET", FACTS) == 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", FACTS, 200),
        ("GET", "/api/v1/proxies", 200),
        ("GET", "/debug/proxy", 200),
        ("POST", "/debug/try", 405),
        ("POST", "/api/v1/try", 405),
        ("PUT", FACTS, 405),
        ("DELETE", REVOCATIONS, 405),
        ("GET", REVOCATIONS, 405),
        ("POST", "/certs/issue-proxy", 405),
        ("GET", "/certs/tokens", 404),
        ("POST", REVOCATIONS, 400),
        ("POST", RETRY, 400),
    ],
)
async def test_port_only_reads(
    tmp_path: Path, reading: FakeReading, method: str, path: str, status: int
) -> None:
    """Of the commands of the socket, there are only the acts, each with a complete body."""
    async with some_servers(tmp_path, {"a": reading}) as servers:
        pair: Pair = replica_pair(servers.authority, "b", now())
        assert await _status(servers, "a", pair.chain_pem, pair.key.reveal(), method, path) == status


async def test_acts_of_another_server(tmp_path: Path) -> None:
    """A revocation is brought in force by each server, and a proxy is offered resources by its own."""
    async with some_servers(tmp_path, {name: FakeReading() for name in "abc"}) as servers:
        servers["c"].is_refusing = True
        answers = await servers["a"].client.act(REVOCATIONS, {"serial": "1f", "reason": "stolen"})
        assert {name: json.loads(of.content) for name, of in answers.answers.items()} == {
            "b": {"in_force": True},
            "c": {"in_force": False},
        }
        assert servers["b"].revoked == servers["c"].revoked == [("1f", "stolen")]
        offered = await servers["a"].client.act(RETRY, {"proxy": str(NAME)}, "b")
        assert json.loads(offered.answers["b"].content) == {"proxy": str(NAME), "offered": ["route a"]}
        assert (servers["b"].retried, servers["c"].retried) == ([str(NAME)], [])


async def test_server_that_hangs_is_named_in_time(tmp_path: Path) -> None:
    """A stopped process still accepts connections in its kernel; the others answer meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        async with some_servers(tmp_path, {"a": FakeReading(), "b": FakeReading()}, seconds=0.5) as servers:
            servers["a"].membership.hear(
                {
                    ReplicaId("b"): servers["b"].membership.encoded(),
                    ReplicaId("hung"): ReplicaState(
                        peer_address=f"127.0.0.1:{hanging.getsockname()[1]}"
                    ).encode(),
                }
            )
            turns = 0

            async def counted() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0.01)

            counting = asyncio.create_task(counted())
            answers = await servers["a"].client.ask(SERVER)
            counting.cancel()
            # The event loop has served others all the time.
            assert turns > 5
            assert (set(answers.answers), dict(answers.silent)) == ({"b"}, {"hung": "no answer within 0.5 s"})


async def test_each_server_without_an_answer_has_its_reason(tmp_path: Path) -> None:
    """The reason tells a wrong address from another version, and from another server at the address."""
    async with some_servers(tmp_path, {"a": FakeReading(), "b": FakeReading()}) as servers:
        at = str(servers["b"].at)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        states = {
            "gone": ReplicaState(peer_address=f"127.0.0.1:{port}").encode(),
            "starting": ReplicaState().encode(),
            "strange": ReplicaState(peer_address="nowhere").encode(),
            "unreadable": b"[]",
            "impostor": ReplicaState(peer_address=at).encode(),
        }
        servers["a"].membership.hear({ReplicaId(name): state for name, state in states.items()})
        answers = await servers["a"].client.ask(SERVER)
        assert answers.answers == {}
        silent = dict(answers.silent)
        assert f"127.0.0.1:{port}" in silent.pop("gone")
        assert "certificate" in silent.pop("impostor").lower()
        assert silent == {
            "starting": "it does not listen for other servers yet",
            "strange": "its announced address 'nowhere' is not HOST:PORT",
            "unreadable": "its announced state cannot be read, perhaps because the version differs",
        }


async def test_renewed_certificate_is_used_at_once(tmp_path: Path) -> None:
    """Both sides go on with the new certificate, without a restart."""
    async with some_servers(tmp_path, {"a": FakeReading(), "b": FakeReading()}) as servers:
        before = {name: servers[name].tls.identity().chain for name in "ab"}
        for name in "ab":
            await servers[name].tls.look(now() + timedelta(hours=18))  # due for certain
            assert servers[name].tls.identity().chain != before[name]
            await servers[name].tls.look(now())
        answers = await servers["a"].client.ask(SERVER)
        assert (set(answers.answers), dict(answers.silent)) == ({"b"}, {})


async def test_question_before_the_start_and_after_the_end(tmp_path: Path) -> None:
    """Pages that come too early or too late are answered without the other servers."""
    async with some_servers(tmp_path, {"a": FakeReading(), "b": FakeReading()}) as servers:
        client = servers["a"].client
    assert dict((await client.ask(SERVER)).silent) == {"b": "this server is starting or stopping"}
