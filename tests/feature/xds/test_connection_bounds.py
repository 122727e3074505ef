"""Tests of limits on connections with real connections, and of the same load without limits."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.soak.program import ATTACKERS
from xds.cache import NodeKey
from xds.connections import guard
from xds.hooks import AnyNode, Cause, Peer
from xds.limits import Limits
from xds.protocol.resources.resource import ENDPOINT

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]
OPEN = 1 << 40
"""As a bound: none."""
ROOT = Path(__file__).parents[3]


class Counting(AnyNode):
    """An authenticator that accepts every client and counts its calls."""

    asked = 0

    def authenticate(self, peer: Peer) -> NodeKey:
        """Count the call, and return the node key."""
        self.asked += 1
        return super().authenticate(peer)


def ended(connections: list[socket.socket]) -> list[bool]:
    """Return for each connection whether the server has closed it."""
    result = []
    for connection in connections:
        connection.setblocking(False)
        try:
            result.append(not connection.recv(1))
        except BlockingIOError:
            result.append(False)
        except ConnectionError:
            result.append(True)
    return result


async def attack(kind: str, port: int, folder: Path, pki: Any, count: int) -> dict[str, int]:
    """Run an attacker with the first client's certificate, for at most five seconds."""
    folder.mkdir()
    for name, content in (("roots", pki.roots), ("client", pki.client_chain)):
        (folder / f"{name}.pem").write_bytes(content)
    (folder / "client.key").write_bytes(pki.client_key)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ATTACKERS), kind, str(port), str(folder), "client", str(count), "5"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    return dict(json.loads(out))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_number_of_silent_connections_is_limited(
    serve: Serve, connect: Connect, eventually: Eventually, host: str
) -> None:
    """A fourth of `idle_connections` stays. A connection with a stream always stays."""
    served = await serve(limits=Limits(idle_connections=40), host=host)
    client = connect(served.port, host=host)
    await client.ask(ENDPOINT, "a")
    await eventually(served.server.statuses)
    silent = [socket.create_connection((host, served.port)) for _ in range(100)]
    # A thread ends the connections and reports them afterwards.
    await eventually(lambda: sum(ended(silent)) == 90 and served.seen.ended_connections)

    assert {cause for _, cause in served.seen.ended_connections} == {Cause.CROWD}
    assert len(served.server.statuses()) == 1
    for item in silent:
        item.close()


async def test_many_silent_connections_are_checked_again_at_once(
    serve: Serve, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next regular check would come in an hour, but a crowd causes an immediate one."""
    monkeypatch.setattr(guard, "LOOKING_PART", 1e-9)
    monkeypatch.setattr(guard, "LONGEST_SECONDS", 3600.0)
    served = await serve(limits=Limits(idle_connections=100, handshake_seconds=3600.0))
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(80)]
    await eventually(lambda: sum(ended(silent)) == 55 and served.seen.ended_connections)

    assert {cause for _, cause in served.seen.ended_connections} == {Cause.CROWD}
    for item in silent:
        item.close()


async def test_silent_connections_stay_without_a_limit(serve: Serve, eventually: Eventually) -> None:
    """This is the negative control: the guard has seen all 100 connections and ends none."""
    served = await serve(limits=Limits(handshake_seconds=3600.0))
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(100)]
    await eventually(lambda: len(served.server._guard._connections._known) == 100)

    assert not any(ended(silent))
    for item in silent:
        item.close()


async def test_handshake_has_a_time_limit(serve: Serve, eventually: Eventually) -> None:
    """A silent connection and one with a partial first message are closed by gRPC."""
    served = await serve(limits=Limits(handshake_seconds=0.2))
    begun = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(2)]
    begun[1].sendall(bytes.fromhex("160301020001"))
    await eventually(lambda: all(ended(begun)))

    assert served.seen.ended_connections == [], "gRPC's own doing"
    for item in begun:
        item.close()


async def test_connection_without_calls_has_a_time_limit(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """The connection is ended after its handshake and the end of its only stream."""
    served = await serve(limits=Limits(idle_seconds=0.1, age_seconds=0.05))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    await client.status()
    await eventually(lambda: served.seen.ended_connections)

    ((peer, cause),) = served.seen.ended_connections
    assert (peer.certificate is not None, cause) == (True, Cause.IDLE)


@pytest.mark.parametrize("kind", ["resets", "late-resets"])
async def test_rapid_resets_are_limited(serve: Serve, pki: Any, tmp_path: Path, kind: str) -> None:
    """Resets before or after a call has begun end the connection, and few calls are authenticated."""
    door = Counting(NodeKey("n"))
    served = await serve(door)
    did = await attack(kind, served.port, tmp_path / "keys", pki, 1_000_000)

    assert did["ended"] >= 1
    assert {cause for _, cause in served.seen.ended_connections} <= {Cause.CALLS, Cause.BYTES}
    assert door.asked <= 100 + 10 * 20


@pytest.mark.parametrize("kind", ["resets", "late-resets"])
async def test_rapid_resets_continue_without_limits(
    serve: Serve, pki: Any, tmp_path: Path, kind: str
) -> None:
    """This is the negative control: one connection does a thousand resets."""
    open_wide = Limits(
        streams_per_certificate=None,
        calls_per_second=None,
        idle_bytes=OPEN,
        received_bytes_per_second=float(OPEN),
    )
    served = await serve(limits=open_wide)
    did = await attack(kind, served.port, tmp_path / "keys", pki, 1000)

    assert did == {"done": 1000, "connections": 1, "ended": 0}
    assert served.seen.ended_connections == []
