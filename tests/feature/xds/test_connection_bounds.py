"""Bounds on connections, reached by real ones; and the same done to a server without the bound."""

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
    """Takes a client at its word, and counts how often it is asked."""

    asked = 0

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the one node key there is."""
        self.asked += 1
        return super().authenticate(peer)


def ended(connections: list[socket.socket]) -> list[bool]:
    """Say of each connection whether the server has ended it."""
    found = []
    for each in connections:
        each.setblocking(False)
        try:
            found.append(not each.recv(1))
        except BlockingIOError:
            found.append(False)
        except ConnectionError:
            found.append(True)
    return found


async def attack(kind: str, port: int, folder: Path, pki: Any, count: int) -> dict[str, int]:
    """Run an attacker with the first client's certificate, for five seconds at most."""
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
async def test_silent_connections_are_bounded_in_number(
    serve: Serve, connect: Connect, eventually: Eventually, host: str
) -> None:
    """A fourth of what may be idle stays; who carries a stream stays at any rate."""
    served = await serve(limits=Limits(idle_connections=40), host=host)
    client = connect(served.port, host=host)
    await client.ask(ENDPOINT, "a")
    await eventually(served.server.statuses)
    silent = [socket.create_connection((host, served.port)) for _ in range(100)]
    # It is told of after it is done, which is in a thread.
    await eventually(lambda: sum(ended(silent)) == 90 and served.seen.ended_connections)

    assert {cause for _, cause in served.seen.ended_connections} == {Cause.CROWD}
    assert len(served.server.statuses()) == 1
    for each in silent:
        each.close()


async def test_a_crowd_of_silent_ones_is_looked_at_again_however_dear_a_look_is(
    serve: Serve, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the next look would come after gRPC's own deadline; here it would come in an hour."""
    monkeypatch.setattr(guard, "LOOKING_PART", 1e-9)
    monkeypatch.setattr(guard, "LONGEST_SECONDS", 3600.0)
    served = await serve(limits=Limits(idle_connections=100, handshake_seconds=3600.0))
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(80)]
    await eventually(lambda: sum(ended(silent)) == 55 and served.seen.ended_connections)

    assert {cause for _, cause in served.seen.ended_connections} == {Cause.CROWD}
    for each in silent:
        each.close()


async def test_without_a_bound_silent_connections_stay(serve: Serve, eventually: Eventually) -> None:
    """The negative control: as many, and the guard has looked at all of them."""
    served = await serve(limits=Limits(handshake_seconds=3600.0))
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(100)]
    await eventually(lambda: len(served.server._guard._connections._known) == 100)

    assert not any(ended(silent))
    for each in silent:
        each.close()


async def test_a_handshake_is_bounded_in_time(serve: Serve, eventually: Eventually) -> None:
    """Silent, or in the middle of its first message."""
    served = await serve(limits=Limits(handshake_seconds=0.2))
    begun = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(2)]
    begun[1].sendall(bytes.fromhex("160301020001"))
    await eventually(lambda: all(ended(begun)))

    assert served.seen.ended_connections == [], "gRPC's own doing"
    for each in begun:
        each.close()


async def test_a_connection_without_calls_is_bounded_in_time(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """Its handshake done, and its only stream over."""
    served = await serve(limits=Limits(idle_seconds=0.1, age_seconds=0.05))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    await client.status()
    await eventually(lambda: served.seen.ended_connections)

    ((peer, cause),) = served.seen.ended_connections
    assert (peer.certificate is not None, cause) == (True, Cause.IDLE)


@pytest.mark.parametrize("kind", ["resets", "late-resets"])
async def test_rapid_resets_are_counted_and_end_the_connection(
    serve: Serve, pki: Any, tmp_path: Path, kind: str
) -> None:
    """Whether they come before a call was begun to be served or after; few get so far."""
    door = Counting(NodeKey("n"))
    served = await serve(door)
    did = await attack(kind, served.port, tmp_path / "keys", pki, 1_000_000)

    assert did["ended"] >= 1
    assert {cause for _, cause in served.seen.ended_connections} <= {Cause.CALLS, Cause.BYTES}
    assert door.asked <= 100 + 10 * 20


@pytest.mark.parametrize("kind", ["resets", "late-resets"])
async def test_without_bounds_rapid_resets_go_on(serve: Serve, pki: Any, tmp_path: Path, kind: str) -> None:
    """The negative control: one connection does as many as would be too many."""
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
