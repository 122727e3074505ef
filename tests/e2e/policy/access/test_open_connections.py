"""Tests of connections that are open during a policy change: only those without permission are ended.

The drain time of these Envoys is one second, so that connections end soon.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import aiohttp
import pytest
import pytest_asyncio

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.sidecars.envoy import names
from tests.e2e.policy import applications
from tests.e2e.policy.applications import ECHO, GREETER, HTTP
from tests.e2e.policy.policies import PERMISSIVE, Document, Match, http, path, ports, routes, target, tcp
from tests.e2e.policy.running_mesh import bound
from tests.golden.running_mesh import TRUST_DOMAIN, LiveMesh
from tests.meshes import texts

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]

NET = f"127.{100 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
SERVER, APPLICATION = f"{NET}.1", f"{NET}.2"
CLIENTS = {"ann": f"{NET}.3", "bob": f"{NET}.4"}
PORTS = {ECHO: "tcp", GREETER: "tcp-server-first", HTTP: "http"}
GREETING = "server speaks first\n"


def documents() -> list[Document]:
    """Return a server with three ports, and two clients that offer them at their own addresses."""
    offered = [{"port": port, "name": f"p{port}", "appProtocol": text} for port, text in PORTS.items()]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "server", "namespace": "shop"},
            "spec": {"selector": {"app": "server"}, "ports": offered},
        },
        _workload("server", SERVER, {"applicationAddress": APPLICATION}, app="server"),
        *(_workload(name, address, {"upstreams": _upstreams(address)}) for name, address in CLIENTS.items()),
    ]


def _workload(name: str, address: str, spec: Document, **labels: str) -> Document:
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"address": address, "serviceAccount": name, "uuid": name, **spec},
    }


def _upstreams(address: str) -> list[Document]:
    return [{"service": "server.shop", "port": port, "address": address, "localPort": port} for port in PORTS]


def admitting(*clients: str, name: str = "t", port: int = ECHO) -> tuple[Document, Document]:
    """Return a policy that admits clients to a TCP port."""
    accounts = tuple(f"shop/{client}" for client in clients)
    return ports(f"{name}-ports", port), target(name, "shop/server", accounts, tcp(f"{name}-ports"))


@dataclass
class Line:
    """An open connection to an application that answers line by line."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def echoes(self) -> bool:
        """Return whether the server echoes a line."""
        try:
            async with asyncio.timeout(30):
                self.writer.write(b"hello\n")
                return await self.reader.readline() == b"server: hello\n"
        except ConnectionError:
            return False

    async def ended(self) -> None:
        """Wait until the server ends the connection."""
        async with asyncio.timeout(30):
            try:
                assert await self.reader.read() == b""
            except ConnectionError:
                return


@dataclass
class Changing:
    """The mesh, whose policy changes while connections are open."""

    live: LiveMesh
    ends: AsyncExitStack
    lines: list[Line] = field(default_factory=list)

    @classmethod
    async def start(cls, live: LiveMesh, ends: AsyncExitStack) -> Self:
        """Start the application and the Envoys."""
        await applications.start("server", partial(bound, APPLICATION), ends)
        for name in ("server", *CLIENTS):
            await live.envoy(name, drain_seconds=1)
        return cls(live, ends)

    async def enforce(self, *policy: Document) -> None:
        """Enforce exactly this policy everywhere."""
        self.live.apply(texts.written([*documents(), *policy]))
        await self.live.in_force()

    async def through(self, client: str, port: int = ECHO) -> Line:
        """Connect through a client's sidecar."""
        return self._kept(await asyncio.open_connection(CLIENTS[client], port))

    async def past(self, client: str, port: int = ECHO, named: str | None = None) -> Line:
        """Connect directly to the server's sidecar with the client's certificate and this TLS server name."""
        tls = self.live.client("shop", client)
        return self._kept(await asyncio.open_connection(SERVER, port, ssl=tls, server_hostname=named or ""))

    def _kept(self, opened: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> Line:
        self.ends.callback(opened[1].transport.abort)
        self.lines.append(Line(*opened))
        return self.lines[-1]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Changing]:
    """A server and two clients in explicit interception; no Envoy may have logged a complaint at the end."""
    async with AsyncExitStack() as ends:
        live = await LiveMesh.start(tmp_path_factory.mktemp("open"), texts.written(documents()), ends)
        yield await Changing.start(live, ends)
        assert await live.complaints() == ""


def asked_for(client: str) -> str:
    """Return the TLS server name of a client's sidecar when it calls the server."""
    identity = ServiceIdentity(Namespace("shop"), ServiceAccountName(client))
    return f"server.shop.svc.cluster.local.{names.caller(identity, TRUST_DOMAIN)}"


async def test_wider_policy_ends_no_permitted_connection(mesh: Changing) -> None:
    """One more client or rule, or one of two rules less, does not disturb a caller that is still permitted.

    A connection on the common filter chain is drained, which shows that the change is in force.
    """
    await mesh.enforce(*admitting("ann"))
    ann = await mesh.through("ann")
    assert await ann.echoes()
    for policy in (
        admitting("ann", "bob"),
        (*admitting("ann", "bob"), *admitting("ann", name="again")),
        admitting("ann", name="again"),
    ):
        # A stranger to filter chains of callers is drained: with it, whatever else is.
        common = await mesh.past("ann")
        assert await common.echoes()
        await mesh.enforce(*policy)
        await common.ended()
        assert await ann.echoes()


async def test_only_connections_without_permission_are_ended(mesh: Changing) -> None:
    """They end after the drain time, also at the server if the client bypasses its own sidecar."""
    await mesh.enforce(*admitting("ann", "bob"))
    ann, past, bob = (
        await mesh.through("ann"),
        await mesh.past("ann", named=asked_for("ann")),
        await mesh.through("bob"),
    )
    assert [await line.echoes() for line in (ann, past, bob)] == [True] * 3
    await mesh.enforce(*admitting("bob"))
    await ann.ended()
    await past.ended()
    assert await bob.echoes()
    assert await (await mesh.through("bob")).echoes()


@pytest.mark.parametrize("port", [ECHO, GREETER])
async def test_server_name_of_another_caller_gives_no_access(mesh: Changing, port: int) -> None:
    """A client that requests the server name of a permitted caller gets no byte, unless it is that caller."""
    await mesh.enforce(*admitting("bob", port=port))
    for named in (asked_for("bob"), asked_for("ann"), "server.shop", None):
        with pytest.raises((ConnectionError, ssl.SSLError)):
            line = await mesh.past("ann", port, named)
            line.writer.write(b"hello\n")
            async with asyncio.timeout(30):
                assert await line.reader.read() == b""
            raise ConnectionResetError
    bob = await mesh.past("bob", port, asked_for("bob"))
    if port == GREETER:
        assert await bob.reader.readline() == GREETING.encode()
    assert await bob.echoes()


def requests(*matches: Match, clients: tuple[str, ...] = ("ann", "bob")) -> tuple[Document, Document]:
    """Return a policy that admits requests of clients."""
    accounts = tuple(f"shop/{client}" for client in clients)
    return routes("g", *matches), target("t", "shop/server", accounts, http("g"))


async def hears(socket: aiohttp.ClientWebSocketResponse) -> bool:
    """Return whether a WebSocket is answered."""
    async with asyncio.timeout(30):
        await socket.send_str("word")
        return await socket.receive_str() == "heard word"


async def closed(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Wait until the server ends a WebSocket."""
    async with asyncio.timeout(30):
        assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE)


WIDE = requests(path("/.*"))


@pytest.mark.parametrize(
    "narrowed",
    [
        (),
        requests(path("/.*"), clients=("bob",)),
        requests(path("/other/ws")),
        requests(path("/.*", "POST"), path("/other/ws")),
    ],
    ids=["no-policy", "not-for-ann", "another-path", "another-method"],
)
async def test_websocket_ends_when_it_is_no_longer_permitted(
    mesh: Changing, narrowed: tuple[Document, ...]
) -> None:
    """The WebSocket ends after the drain time, also if the client bypasses its own sidecar."""
    await mesh.enforce(*WIDE)
    async with aiohttp.ClientSession() as session:
        through = await session.ws_connect(f"http://{CLIENTS['ann']}:{HTTP}/a/ws")
        tls = mesh.live.client("shop", "ann")
        past = await session.ws_connect(f"https://{SERVER}:{HTTP}/a/ws", ssl=tls)
        assert [await hears(socket_response) for socket_response in (through, past)] == [True, True]
        await mesh.enforce(*narrowed)
        await closed(through)
        await closed(past)


async def test_wider_rules_end_no_websocket(mesh: Changing) -> None:
    """An additional target, path or client changes no listener.

    A narrower policy updates the listener twice and ends the WebSocket.
    """
    chains = "listener_manager.listener_in_place_updated"
    first = requests(path("/a/ws"), clients=("ann",))
    more = (routes("h", path("/b")), target("u", "shop/server", ("shop/bob",), http("h")))
    await mesh.enforce(*first)
    before = await mesh.live.stat("server", chains)
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(f"http://{CLIENTS['ann']}:{HTTP}/a/ws")
        for policy in (
            (*first, *more),
            (*requests(path("/a/ws"), path("/c"), clients=("ann",)), *more),
            (*requests(path("/a/ws"), path("/c")), *more),
            (*requests(path("/a/ws"), path("/c")), *more, PERMISSIVE),
        ):
            await mesh.enforce(*policy)
            assert await hears(socket)
        assert await mesh.live.stat("server", chains) == before
        await mesh.enforce(*first, *more)
        await closed(socket)
        assert await mesh.live.stat("server", chains) == before + 2


async def test_websocket_that_lost_permission_during_an_outage_ends(mesh: Changing) -> None:
    """Connections that newer, narrower rules do not permit end when the control plane is back."""
    await mesh.enforce(*WIDE)
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(f"http://{CLIENTS['ann']}:{HTTP}/a/ws")
        assert await hears(socket)
        async with mesh.live.away():
            mesh.live.apply(texts.written([*documents(), *requests(path("/other"))]))
        await closed(socket)
