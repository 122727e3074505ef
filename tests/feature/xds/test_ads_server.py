"""Tests of aggregated discovery over a real socket with mutual TLS."""

import asyncio
import dataclasses
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode, AuthenticationUnavailable, Peer, StreamEnd, StreamRefused
from xds.limits import Limits
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, Resource, encode
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Node
from xds.server.ads import SERVICE, AdsServer
from xds.server.listener import ListenError
from xds.server.tls import Plaintext
from xds.stream_status import SyncState, Variant

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]


def endpoints(name: str, weight: int = 0) -> Resource:
    """Return a small resource."""
    assignment = endpoint_pb2.ClusterLoadAssignment(cluster_name=name)
    assignment.policy.overprovisioning_factor.value = weight + 1
    return encode(assignment)


def publish(cache: Any, *resources: Resource, nodes: tuple[str, ...] = ("n",)) -> None:
    """Publish these resources to the nodes."""
    cache.publish({GroupKey("g"): Snapshot.of(resources)}, {NodeKey(node): GroupKey("g") for node in nodes})


@pytest.mark.parametrize("variant", list(Variant))
async def test_client_gets_a_response_and_the_next_version(
    serve: Serve, connect: Connect, variant: Variant
) -> None:
    """The client subscribes, acknowledges, and gets the changed resource with another nonce."""
    served = await serve()
    publish(served.cache, endpoints("a"), endpoints("b"))
    client = connect(served.port, variant)

    await client.ask(ENDPOINT, "a")
    first = await client.response()
    await client.ask(ENDPOINT, *(["a"] if variant is Variant.SOTW else []), nonce=first.nonce)
    publish(served.cache, endpoints("a", 1), endpoints("b"))
    second = await client.response()

    assert len(first.resources) == len(second.resources) == 1
    assert first.nonce != second.nonce
    assert second.control_plane.identifier == "meshwright"


async def test_s12_early_request_is_answered_by_the_first_snapshot(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """The stream has no response until there is a snapshot (S12)."""
    served = await serve()
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    await eventually(lambda: served.server.statuses() and served.server.statuses()[0].types)
    assert not served.server.statuses()[0].served

    publish(served.cache, endpoints("a"))

    assert len((await client.response()).resources) == 1


async def test_s12_stream_without_a_snapshot_ends_at_the_deadline(serve: Serve, connect: Connect) -> None:
    """The stream ends with UNAVAILABLE after `unserved_seconds`."""
    served = await serve(limits=Limits(unserved_seconds=0.05))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")

    assert await client.status() == (
        grpc.StatusCode.UNAVAILABLE,
        "the configuration of this proxy is not ready yet",
    )
    assert served.seen.endings[0][0] is StreamEnd.NOT_SERVED


async def test_s12_stream_whose_node_loses_its_snapshot_ends_at_the_deadline(
    serve: Serve, connect: Connect
) -> None:
    """No response is sent meanwhile. A new snapshot before the deadline continues the stream."""
    served = await serve(limits=Limits(unserved_seconds=0.3))
    publish(served.cache, endpoints("a"))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    assert len((await client.response()).resources) == 1

    served.cache.publish({}, {})
    for _ in range(5):
        await asyncio.sleep(0)  # the stream wakes, and is held
    publish(served.cache, endpoints("a", 1))
    assert len((await client.response()).resources) == 1
    await asyncio.sleep(0.4)  # longer than the deadline
    assert served.seen.endings == []

    served.cache.publish({}, {})
    assert await client.status() == (
        grpc.StatusCode.UNAVAILABLE,
        "the configuration of this proxy is not ready yet",
    )
    assert served.seen.endings[0][0] is StreamEnd.NOT_SERVED


async def test_w6_nack_is_recorded_with_the_clients_message(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """The rejection is in the stream's status and reported to the observer."""
    served = await serve()
    publish(served.cache, endpoints("a"))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    response = await client.response()

    await client.send(
        discovery_pb2.DiscoveryRequest(
            type_url=ENDPOINT,
            resource_names=["a"],
            response_nonce=response.nonce,
            error_detail={"code": 13, "message": "no such thing"},
        )
    )
    await eventually(lambda: served.seen.answers)
    status = served.server.statuses()[0].types[0]

    assert (status.state, status.rejection.message) == (SyncState.REJECTED, "no such thing")
    assert served.seen.answers[0].code == 13


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"type_url": ENDPOINT}, "the first request lacks node.id"),
        ({"node": {"id": "u1"}}, "a request on an aggregated stream lacks type_url"),
    ],
)
async def test_s3_s6_request_without_node_or_type_ends_the_stream(
    serve: Serve, connect: Connect, request_: dict[str, Any], words: str
) -> None:
    """The status message names the missing field."""
    served = await serve()
    client = connect(served.port)
    await client.send(discovery_pb2.DiscoveryRequest(**request_))

    assert await client.status() == (grpc.StatusCode.INVALID_ARGUMENT, words)


class Doorkeeper:
    """An authenticator that refuses the peer or the node on request."""

    def __init__(self, at_door: str = "", at_node: str = "") -> None:
        self.at_door, self.at_node = at_door, at_node
        self.certificates: list[bytes | None] = []

    def authenticate(self, peer: Peer) -> NodeKey:
        """Refuse the peer, or return the key `n`."""
        self.certificates.append(peer.certificate)
        if self.at_door:
            raise StreamRefused(self.at_door)
        return NodeKey("n")

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Refuse the node."""
        if self.at_node:
            raise StreamRefused(self.at_node)


@pytest.mark.parametrize("keeper", [Doorkeeper(at_door="secret reason"), Doorkeeper(at_node="secret reason")])
async def test_s4_refused_client_gets_no_reason_and_no_response(
    serve: Serve, connect: Connect, eventually: Eventually, keeper: Doorkeeper
) -> None:
    """The reason is for the server's log only. The authenticator has the client's certificate."""
    served = await serve(keeper)
    publish(served.cache, endpoints("a"))
    client = connect(served.port)
    if keeper.at_node:  # a peer is refused before its first request
        await client.ask(ENDPOINT, "a")

    assert await client.status() == (
        grpc.StatusCode.PERMISSION_DENIED,
        "the stream is refused: see the log of the control plane",
    )
    await eventually(
        lambda: (
            served.seen.refusals == ["secret reason"]
            or served.seen.endings == [(StreamEnd.REFUSED, "secret reason")]
        )
    )
    assert served.seen.sent_bytes == 0
    assert (keeper.certificates[0] or b"").startswith(b"-----BEGIN CERTIFICATE-----")


async def test_client_that_is_not_known_yet_is_looked_up_first(serve: Serve, connect: Connect) -> None:
    """The look-up comes before the authentication. If it is not possible now, the client must try again."""
    keeper, is_away = Doorkeeper(at_door="unknown"), True

    async def prepare(peer: Peer) -> None:
        assert peer.certificate is not None
        if is_away:
            raise AuthenticationUnavailable("away")
        keeper.at_door = ""

    served = await serve(keeper, prepare=prepare)
    publish(served.cache, endpoints("a"))
    assert await connect(served.port).status() == (
        grpc.StatusCode.UNAVAILABLE,
        "the control plane cannot look up this certificate now: try again later",
    )
    assert (served.seen.refusals, keeper.certificates) == (["away"], [])
    is_away = False
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    assert len((await client.response()).resources) == 1


async def test_s4_stream_ends_when_its_client_is_refused_later(serve: Serve, connect: Connect) -> None:
    """A revoked certificate ends its open streams at the next check."""
    keeper = Doorkeeper()
    served = await serve(keeper, Limits(recheck_seconds=0.02))
    publish(served.cache, endpoints("a"))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    await client.response()
    keeper.at_door = "revoked"

    assert (await client.status())[0] is grpc.StatusCode.PERMISSION_DENIED
    assert (StreamEnd.REFUSED, "revoked") in served.seen.endings


async def test_s9_streams_of_one_node_are_limited_and_independent(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """Each stream has its own state.

    A stream above the limit is refused, and the end of one leaves the other.
    """
    served = await serve(limits=Limits(streams_per_certificate=2))
    publish(served.cache, endpoints("a"))
    clients = [connect(served.port) for _ in range(2)]
    for client in clients:
        await client.ask(ENDPOINT, "a")
        await client.response()
    extra = connect(served.port)

    assert (await extra.status())[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    await clients[0].channel.close()
    await eventually(lambda: len(served.server.statuses()) == 1)
    publish(served.cache, endpoints("a", 1))
    assert len((await clients[1].response()).resources) == 1


async def test_s10_half_close_ends_the_stream_with_ok(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """After the client's half-close the stream ends with OK, and the server forgets it."""
    served = await serve()
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    await client.call.done_writing()

    assert (await client.status())[0] is grpc.StatusCode.OK
    await eventually(lambda: served.server.statuses() == ())
    assert served.seen.endings == [(StreamEnd.CLIENT, "")]


async def test_n8_slow_reader_is_ended_without_delaying_others(serve: Serve, connect: Connect) -> None:
    """The client reads nothing while megabytes are pushed. The other client gets each response."""
    served = await serve(limits=Limits(write_seconds=2.0, request_bytes=8 * 1024 * 1024))
    names = [f"{n:04}" + "x" * 2000 for n in range(3000)]
    # Made in advance, because long work on the event loop would delay the quick client's writes too.
    editions = [Snapshot.of([endpoints(name, weight) for name in names]) for weight in (0, 1)]
    group, node = GroupKey("g"), NodeKey("n")
    served.cache.publish({group: editions[0]}, {node: group})
    slow, quick = connect(served.port), connect(served.port)
    await slow.ask(ENDPOINT, *names)
    await quick.ask(ENDPOINT, names[0])
    await quick.response()
    number = 0
    while not served.seen.endings:
        number += 1
        served.cache.publish({group: editions[number % 2]}, {node: group})
        await quick.response()

    assert served.seen.endings[0][0] is StreamEnd.SLOW
    assert len(served.server.statuses()) == 1


async def test_missing_or_foreign_certificate_fails_in_the_handshake(
    serve: Serve, connect: Connect, another_pki: Any
) -> None:
    """No stream is opened, but the handshakes are counted."""
    served = await serve()
    for client in (
        connect(served.port, certificate=False),
        connect(served.port, as_pki=dataclasses.replace(another_pki, roots=served.roots)),
    ):
        with pytest.raises((grpc.aio.AioRpcError, asyncio.InvalidStateError)):
            await client.ask(ENDPOINT, "a")
            await client.response()

    assert served.server.statuses() == ()
    assert served.seen.handshakes >= 2
    assert served.seen.endings == []


def negotiate(port: int, context: ssl.SSLContext) -> str | None:
    """Do a handshake, and return the TLS version."""
    with socket.create_connection(("127.0.0.1", port)) as plain, context.wrap_socket(plain) as secured:
        return secured.version()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_below_1_2_is_refused(
    serve: Serve, pki: Any, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """The handshake fails for TLS 1.1 and succeeds for 1.2 and 1.3."""
    served = await serve()
    context = ssl.create_default_context(cadata=pki.roots.decode())
    context.check_hostname = False
    context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    (tmp_path / "client.pem").write_bytes(pki.client_chain + pki.client_key)
    context.load_cert_chain(tmp_path / "client.pem")
    context.set_alpn_protocols(["h2"])

    if version is ssl.TLSVersion.TLSv1_1:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(negotiate, served.port, context)
    else:
        spoken = await asyncio.to_thread(negotiate, served.port, context)
        assert spoken == version.name.replace("_", ".")


async def test_used_port_is_an_error_that_names_the_address(serve: Serve, pki: Any) -> None:
    """Two servers must not share a port silently."""
    served = await serve()
    second = AdsServer(served.cache, Doorkeeper(), lambda: pki.tls)

    with pytest.raises(ListenError, match=f"127.0.0.1:{served.port}"):
        await second.start(f"127.0.0.1:{served.port}")
    await second.stop(0)


async def test_server_certificate_changes_without_a_restart(
    serve: Serve, connect: Connect, pki: Any, another_pki: Any
) -> None:
    """The next handshake has the new certificate, and the old stream goes on."""
    served = await serve()
    publish(served.cache, endpoints("a"))
    old = connect(served.port)
    await old.ask(ENDPOINT, "a")
    await old.response()

    served.tls[0] = another_pki.tls
    new = connect(served.port, as_pki=another_pki)
    await new.ask(ENDPOINT, "a")
    assert len((await new.response()).resources) == 1
    publish(served.cache, endpoints("a", 1))
    assert len((await old.response()).resources) == 1


async def test_s11_stop_ends_streams_with_ok(serve: Serve, connect: Connect) -> None:
    """Clients get an ordinary end, so that they reconnect (S11)."""
    served = await serve()
    client = connect(served.port)
    publish(served.cache, endpoints("a"))
    await client.ask(ENDPOINT, "a")
    await client.response()

    await served.server.stop(2.0)

    assert (await client.status())[0] is grpc.StatusCode.OK
    assert served.seen.endings == [(StreamEnd.SHUTDOWN, "")]


async def test_s2_node_is_needed_in_the_first_request_only(serve: Serve, connect: Connect) -> None:
    """A later request for another type on the same stream has no node (S2)."""
    served = await serve()
    publish(served.cache, endpoints("a"))
    client = connect(served.port)
    await client.ask(ENDPOINT, "a")
    first = await client.response()
    await client.ask(CLUSTER, node="")
    second = await client.response()

    assert [first.type_url, second.type_url] == [ENDPOINT, CLUSTER]


async def test_plaintext_is_served_only_on_loopback(pki: Any) -> None:
    """An address that is not a literal loopback address is refused."""
    cache = SnapshotCache()
    publish(cache, endpoints("a"))
    server = AdsServer(cache, AnyNode(NodeKey("n")), Plaintext.ON_LOOPBACK)
    for address in ("0.0.0.0:0", "192.0.2.1:0", "localhost:0", "[::]:0"):
        with pytest.raises(ListenError, match="only a loopback address"):
            await server.start(address)
    port = await server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.stream_stream(f"/{SERVICE}/StreamAggregatedResources")()
        request = discovery_pb2.DiscoveryRequest(node={"id": "x"}, type_url=ENDPOINT, resource_names=["a"])
        await call.write(request.SerializeToString())
        assert await call.read() is not grpc.aio.EOF
    await server.stop(0)
