"""The differential mesh as it runs: real Envoys that stay, policies that change under them."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import aiohttp
import yaml

from catalog.decide import Request
from catalog.groups import groups
from catalog.identities import service_identities
from catalog.policy import proxy_policy
from catalog.proxy import ProxyPolicy, SocketAddress
from catalog.view import MeshSettings, View
from mesh.identity import ServiceIdentity
from mesh.names import IpAddress, Port
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.http.router.v3 import router_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from providers.manifests import Manifests
from sidecars.envoy.secrets import secrets
from sidecars.envoy.translate import resources
from sidecars.envoy.typed import OVER_ADS, packed, reference, socket_address
from tests.differential.cases import Document
from tests.differential.topology import (
    BEACON_PORT,
    HTTP_A,
    HTTP_B,
    TCP,
    WORKLOADS,
    Runs,
    documents,
    is_http,
    local_port,
)
from tests.golden.live import TRUST_DOMAIN, LiveMesh, Serve, serve
from xds.cache import GroupKey, NodeKey
from xds.resource import ROUTE, Resource, encode
from xds.snapshot import Snapshot

Translate = Callable[[ProxyPolicy], tuple[Resource, ...]]
_SECONDS = 10.0


@dataclass(frozen=True)
class Answered:
    """What came back: an HTTP status (200 for a TCP greeting, 0 for no answer at all), and from whom."""

    status: int
    by: str = ""


NO_ANSWER = Answered(0)


class DifferentialMesh:
    """The topology with its Envoys; `apply` changes the policy and returns when all of them obey."""

    def __init__(self, live: LiveMesh, base: Manifests) -> None:
        self._live = live
        self._base = base
        self._round = 0
        self._contexts: dict[ServiceIdentity, ssl.SSLContext] = {}
        self.translate: Translate = resources
        self.view = live.view

    @classmethod
    async def start(cls, state: Path, ends: AsyncExitStack) -> Self:
        """Start the control plane, the applications and the Envoys."""
        topology = yaml.safe_dump_all(documents())
        live = await LiveMesh.start(state, topology, ends)
        base = Manifests().apply("a-topology.yaml", topology)
        mesh = cls(live, base)
        for runs in WORKLOADS:
            if runs.labels:
                for port in (HTTP_A, HTTP_B):
                    await serve(ends, runs.application, port, _web(runs.account))
                await serve(ends, runs.application, TCP, _greeter(runs.account))
        mesh._publish()
        for runs in WORKLOADS:
            await live.envoy(runs.uuid)
        mesh._contexts = {each.identity: live.client(each.namespace, each.account) for each in WORKLOADS}
        await mesh._obeyed()
        return mesh

    async def apply(self, policy: tuple[Document, ...]) -> View:
        """Put a policy in force everywhere, and return the view it makes."""
        manifests = self._base.apply("policy.yaml", yaml.safe_dump_all(policy))
        settings = MeshSettings(trust_domain=TRUST_DOMAIN)
        self.view = View.build(manifests.objects(), manifests.inventory(), settings)
        self._publish()
        await self._obeyed()
        return self.view

    async def send(self, request: Request, path: str = "") -> Answered:
        """Send a request from its client's application through both sidecars, its path written thus."""
        runs = next(each for each in WORKLOADS if each.identity == request.client)
        port = local_port(request.service, request.port)
        return await _exchange(runs.address, port, _as(request, path), None)

    async def send_directly(self, request: Request, path: str, server: Runs, port: int) -> Answered:
        """Send a request to a server's sidecar with the client's certificate, past the client's sidecar."""
        assert request.client is not None
        return await _exchange(server.address, port, _as(request, path), self._contexts[request.client])

    async def complaints(self) -> str:
        """Return what the Envoys logged or rejected."""
        logged = [f"{uuid}: {log.read_text()}" for uuid, log in self._live.logs.items() if log.read_text()]
        rejected = [uuid for uuid in self._live.logs if await self._live.stat(uuid, "update_rejected")]
        return "\n".join((*logged, *(f"{uuid} rejected an update" for uuid in rejected)))

    def _publish(self) -> None:
        self._round += 1
        live, now = self._live, datetime.now(UTC)
        names = service_identities(self.view)
        snapshots: dict[GroupKey, Snapshot] = {}
        members: dict[NodeKey, GroupKey] = {}
        for key, uuids in groups(self.view).items():
            certificate = live.manager.ensure(key.identity, names[key.identity], now)
            secret = secrets(certificate, live.manager.trust_bundle(), TRUST_DOMAIN)
            assert key.address is not None
            beacon = _beacon(key.address, self._round)
            made = (*self.translate(proxy_policy(self.view, key)), *secret, *beacon)
            group = GroupKey(uuids[0])
            snapshots[group] = Snapshot.of(made)
            name = self.view.workloads_by_uuid[uuids[0]].proxy_name
            members[NodeKey(str(name))] = group
        live.cache.publish(snapshots, members)

    async def _obeyed(self) -> None:
        """Wait until every Envoy's beacon shows this round, and nothing is warming."""
        async with aiohttp.ClientSession() as session:
            for runs in WORKLOADS:
                await _soon(lambda runs=runs: self._shows(session, runs))  # type: ignore[misc] # bound early
            for runs in WORKLOADS:
                await _soon(lambda runs=runs: self._settled(session, runs))  # type: ignore[misc] # as above

    async def _shows(self, session: aiohttp.ClientSession, runs: Runs) -> bool:
        try:
            answer = await session.get(f"http://{runs.address}:{BEACON_PORT}/")
            return await answer.text() == str(self._round)
        except aiohttp.ClientError:
            return False

    async def _settled(self, session: aiohttp.ClientSession, runs: Runs) -> bool:
        admin = (self._live.state / runs.uuid / "admin").read_text()
        answer = await session.get(f"http://{admin}/stats?filter=warming")
        lines = (await answer.text()).splitlines()
        return bool(lines) and all(line.endswith(": 0") for line in lines)


def _as(request: Request, path: str) -> Request:
    return replace(request, path=path) if path else request


async def _soon(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_SECONDS):
        while not await holds():
            await asyncio.sleep(0.005)


def _beacon(address: IpAddress, number: int) -> tuple[Resource, Resource]:
    """Return a listener that answers with the number of the round, from a route configuration."""
    manager = hcm_pb2.HttpConnectionManager(
        stat_prefix="beacon",
        rds=hcm_pb2.Rds(config_source=OVER_ADS, route_config_name="beacon"),
        http_filters=[
            hcm_pb2.HttpFilter(name="envoy.filters.http.router", typed_config=packed(router_pb2.Router()))
        ],
    )
    chain = listener_components_pb2.FilterChain(
        filters=[
            listener_components_pb2.Filter(
                name="envoy.filters.network.http_connection_manager", typed_config=packed(manager)
            )
        ]
    )
    listener = listener_pb2.Listener(
        name="beacon",
        address=socket_address(SocketAddress(address, Port(BEACON_PORT))),
        filter_chains=[chain],
    )
    body = base_pb2.DataSource(inline_string=str(number))
    route = route_components_pb2.Route(
        match=route_components_pb2.RouteMatch(prefix="/"),
        direct_response=route_components_pb2.DirectResponseAction(status=200, body=body),
    )
    host = route_components_pb2.VirtualHost(name="beacon", domains=["*"], routes=[route])
    routes = route_pb2.RouteConfiguration(name="beacon", virtual_hosts=[host])
    return encode(listener, frozenset({reference(ROUTE, "beacon")})), encode(routes, frozenset())


async def _exchange(address: str, port: int, request: Request, tls: ssl.SSLContext | None) -> Answered:
    """Send one request on a connection of its own; a connection that ends without a word is no answer."""
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(address, port, ssl=tls)
            try:
                if not is_http(request.port):
                    greeting = await reader.readline()
                    return Answered(200, greeting.decode().strip()) if greeting else NO_ANSWER
                writer.write(_written(request))
                return _read(await reader.readuntil(b"\r\n\r\n"))
            finally:
                writer.transport.abort()  # a closing handshake would wait for Envoy's grace of a second
    except (OSError, ssl.SSLError, asyncio.IncompleteReadError):
        return NO_ANSWER


def _written(request: Request) -> bytes:
    lines = [f"{request.method} {request.path} HTTP/1.1"]
    lines.extend(f"{name}: {value}" for name, value in request.headers)
    if request.method in ("POST", "PUT"):
        lines.append("content-length: 0")
    return "\r\n".join([*lines, "connection: close", "", ""]).encode()


def _read(head: bytes) -> Answered:
    first, *lines = head.decode("latin-1").split("\r\n")
    by = next((line.partition(": ")[2] for line in lines if line.lower().startswith("x-served-by:")), "")
    return Answered(int(first.split(" ")[1]), by)


def _web(name: str) -> Serve:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = f"HTTP/1.1 200 OK\r\nx-served-by: {name}\r\ncontent-length: 0\r\n\r\n".encode()
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    return handle


def _greeter(name: str) -> Serve:
    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(f"{name}\n".encode())
            await writer.drain()
        writer.close()

    return handle
