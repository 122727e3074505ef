"""A ring of sidecars: each application may call only the next one.

So each identity is used on both sides, as a client and as a server. Interception is explicit. Each call is a
new TCP connection, which a sidecar dials once, without a retry.
"""

import asyncio
import contextlib
import itertools
import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Self

from certs.contract import Names, Usage
from certs.keys.pair import issue_pair
from meshwright.controller.drivers import ADS_DRIVER
from meshwright.controller.server import BoundAddresses
from meshwright.mesh.host_port import HostPort
from tests.e2e.envoys import Envoy, running
from tests.e2e.policy.calls import exchange
from tests.feature.identity.conftest import Server as Plane
from tests.golden.running_mesh import serve
from tests.meshes import texts
from tests.tools.program import Program, Server

NET = f"127.{92 + os.getpid() % 8}.{os.getpid() // 8 % 250}"
PORT, LOCAL_PORT = 9000, 20000
ANSWERED, WRONG, HUNG = "answered", "not answered", "no answer in time"


@dataclass(frozen=True)
class Link:
    """A member of the ring, by its number, and the member that it calls."""

    number: int
    size: int

    @property
    def name(self) -> str:
        """Return the name of the member's service, identity and workload."""
        return f"w{self.number}"

    @property
    def identity(self) -> str:
        """Return the identity in the form of the logs."""
        return f"shop/{self.name}"

    @property
    def uri(self) -> str:
        """Return the identity in the form of certificates."""
        return f"spiffe://cluster.local/ns/shop/sa/{self.name}"

    @property
    def address(self) -> str:
        """Return the sidecar's address: PORT for other sidecars, LOCAL_PORT for its application."""
        return f"{NET}.{self.number + 1}"

    @property
    def application(self) -> str:
        """Return the address of the application."""
        return f"{NET}.{self.number + 101}"

    @property
    def next(self) -> "Link":
        """Return the member that this one calls."""
        return Link((self.number + 1) % self.size, self.size)

    def manifests(self) -> tuple[str, ...]:
        """Return the member's workload and service, and the permission to call the next member."""
        upstream = texts.upstream(self.next.name, self.address, LOCAL_PORT, PORT)
        spec = f"applicationAddress: {self.application}, upstreams: [{upstream}]"
        return (
            texts.account(self.name),
            texts.service(self.name, texts.port(PORT, PORT, name="tcp-echo")),
            texts.workload(self.name, self.address, spec=spec),
            texts.target(f"{self.name}-calls", self.name, self.next.name, texts.tcp("echo")),
        )


@dataclass
class Ring:
    """A running ring and its control plane in a separate process; an exit stack ends everything."""

    links: tuple[Link, ...]
    server: Server
    envoys: dict[str, Envoy] = field(default_factory=dict)
    clients: dict[str, ssl.SSLContext] = field(default_factory=dict)
    seen: dict[str, set[str]] = field(default_factory=dict)
    """The serials that TLS clients were shown, by identity."""

    @classmethod
    async def start(cls, size: int, config: str, program: Program, envoy: str, ends: AsyncExitStack) -> Self:
        """Start all programs; `config` is the spec of the MeshConfig."""
        links = tuple(Link(number, size) for number in range(size))
        manifests = itertools.chain.from_iterable(item.manifests() for item in links)
        shared = texts.mesh_config(config), texts.tcp_route("echo", PORT)
        (program.mesh / "mesh.yaml").write_text(texts.joined(*shared, *manifests))
        server = await asyncio.to_thread(program.serve)
        ring = cls(links, server)
        at = BoundAddresses(
            {ADS_DRIVER: HostPort.parse(server.bound["ads"])},
            HostPort.parse(server.bound["http"]),
            HostPort.parse(server.bound["debug"]),
        )
        plane = Plane(program.mesh, program.state, at)
        for link in links:
            await serve(ends, link.application, PORT, partial(_answer, link.name))
            folder = program.files / link.name
            name = f"{link.name}.{link.name}.shop"
            ring.envoys[link.name] = await ends.enter_async_context(running(envoy, plane, folder, name=name))
            ring.clients[link.name] = _client(plane, link, folder / "service.pem")
            ring.seen[link.identity] = set()
        return ring

    def issued(self) -> dict[str, dict[str, datetime]]:
        """Return the issued certificates of each identity, in order: the serial and the end of validity."""
        issued: dict[str, dict[str, datetime]] = {link.identity: {} for link in self.links}
        for line in self.server.said("service certificate issued"):
            issued[line["identity"]][line["serial"]] = datetime.fromisoformat(line["not_after"])
        return issued

    async def call(self, link: Link) -> str:
        """Call the next application through both sidecars; return the outcome."""
        return await _within(partial(self._call, link))

    async def look(self, link: Link) -> str:
        """Connect to a sidecar as its permitted TLS client; record the serial of the certificate it presents.

        The client trusts the mesh's root, and accepts only the expected identity.
        """
        return await _within(partial(self._look, link))

    async def all_answer(self) -> bool:
        """Return whether every call succeeds, and every sidecar presents its certificate."""
        calls = itertools.chain(map(self.call, self.links), map(self.look, self.links))
        return set(await asyncio.gather(*calls)) == {ANSWERED}

    async def count(self, stat: str) -> int:
        """Return the sum of a statistic over the upstream clusters of all sidecars."""
        return sum([await envoy.count(f"^cluster.shop/w.*{stat}$") for envoy in self.envoys.values()])

    async def _call(self, link: Link) -> str:
        text = await exchange(link.address, LOCAL_PORT)
        return ANSWERED if text == f"{link.next.name}: hello\n" else WRONG

    async def _look(self, link: Link) -> str:
        caller = self.links[link.number - 1]
        try:
            at = link.address, PORT
            reader, writer = await asyncio.open_connection(*at, ssl=self.clients[caller.name])
        except (ConnectionError, ssl.SSLError):
            return WRONG
        try:
            shown = writer.get_extra_info("peercert")
            writer.write(b"hello\n")
            answer = await reader.readline()
        except (ConnectionError, ssl.SSLError):
            return WRONG
        finally:
            writer.transport.abort()
        self.seen[link.identity].add(format(int(shown["serialNumber"], 16), "x"))
        who = [value for kind, value in shown["subjectAltName"] if kind == "URI"]
        return ANSWERED if (who, answer.decode()) == ([link.uri], f"{link.name}: hello\n") else WRONG


async def _within(call: Callable[[], Awaitable[str]]) -> str:
    try:
        async with asyncio.timeout(30):
            return await call()
    except TimeoutError:
        return HUNG


def _client(plane: Plane, link: Link, file: Path) -> ssl.SSLContext:
    """Return a TLS client with a separate certificate for a member's identity."""
    names = Names("a-caller", uris=(link.uri,))
    pair = issue_pair(plane.authority, Usage.SERVICE, names, timedelta(hours=1), datetime.now(UTC))
    file.write_bytes(pair.chain_pem + pair.key.reveal())
    context = ssl.create_default_context(cadata=plane.authority.trust_bundle().decode())
    context.check_hostname = False
    context.load_cert_chain(file)
    return context


async def _answer(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        writer.write(f"{name}: ".encode() + await reader.readline())
        await writer.drain()
    writer.close()
