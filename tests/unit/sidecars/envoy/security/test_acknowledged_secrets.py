"""Tests of acknowledged secrets: the secrets in force on all streams of each proxy."""

import asyncio

import pytest
from google.protobuf.any_pb2 import Any

import meshwright.delivery.timing.time_slices
from meshwright.delivery.timing.time_slices import in_slices
from meshwright.sidecars.contract.contexts import AcknowledgedSecrets
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.security.acknowledged_secrets import TakenSecrets
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from xds.cache import NodeKey
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.resource import CLUSTER, SECRET, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.stream import Accepted
from xds.protocol.wire import DeltaRequest, Response

ROOTS = ResourceName("root-cert:mesh.example")
CERTIFICATE = ResourceName(names.SERVICE_CERTIFICATE)


def _secret(name: ResourceName, content: bytes) -> Resource:
    packed, secret = Any(), secret_pb2.Secret(name=name)
    if name == CERTIFICATE:
        secret.tls_certificate.certificate_chain.inline_bytes = content
    else:
        secret.validation_context.trusted_ca.inline_bytes = content
    packed.Pack(secret)
    return Resource(SECRET, name, Version(content.decode()), packed.SerializeToString())


def _published(chain: bytes, roots: bytes) -> Snapshot:
    return Snapshot.of((_secret(CERTIFICATE, chain), _secret(ROOTS, roots)))


class Stream:
    """Stream of a proxy that requests its secrets."""

    def __init__(self, snapshot: Snapshot, type_url: str = SECRET) -> None:
        self.stream = DeltaStream()
        self.stream.on_snapshot(snapshot)
        wanted = (CERTIFICATE, ROOTS) if type_url == SECRET else ()
        self.sent: list[Response] = self.stream.on_request(DeltaRequest(type_url, subscribe=wanted))  # type: ignore[arg-type]

    def acknowledges(self) -> "Stream":
        """Acknowledge all responses that were sent."""
        for response in self.sent:
            self.stream.on_request(DeltaRequest(response.type_url, nonce=response.nonce))
        return self


def _taken(streams: list[tuple[str, Stream]], published: Snapshot) -> list[AcknowledgedSecrets]:
    def takers() -> list[tuple[NodeKey, Accepted]]:
        return [(NodeKey(node), stream.stream.accepted) for node, stream in streams]

    return list(TakenSecrets(takers, lambda _: published).all())


def test_secret_counts_if_every_stream_of_the_proxy_has_acknowledged_it() -> None:
    """Only secrets in force count. A proxy that asks for no secrets is left out."""
    now = _published(b"chain", b"roots")
    old = Stream(_published(b"chain", b"before")).acknowledges()
    streams = [
        ("a", Stream(now).acknowledges()),
        ("b", Stream(now)),
        ("c", Stream(now).acknowledges()),
        ("c", old),
        ("d", Stream(now, CLUSTER)),
        ("e", Stream(now, CLUSTER)),
        ("e", Stream(now).acknowledges()),
    ]
    assert _taken(streams, now) == [
        AcknowledgedSecrets(NodeKey("a"), b"roots", b"chain"),
        AcknowledgedSecrets(NodeKey("b"), b"", b""),
        AcknowledgedSecrets(NodeKey("c"), b"", b"chain"),
        AcknowledgedSecrets(NodeKey("e"), b"roots", b"chain"),
    ]
    assert _taken(streams[:1], Snapshot.of(())) == [AcknowledgedSecrets(NodeKey("a"), b"", b"")]


async def test_scan_of_many_proxies_lets_other_tasks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scan yields after each time slice, which is here after every proxy."""
    monkeypatch.setattr(meshwright.delivery.timing.time_slices, "SLICE_SECONDS", 0.0)
    now, turns = _published(b"chain", b"roots"), 0
    stream = Stream(now).acknowledges()

    def takers() -> list[tuple[NodeKey, Accepted]]:
        return [(NodeKey(f"p{number}"), stream.stream.accepted) for number in range(50)]

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(others())
    result = await in_slices(TakenSecrets(takers, lambda _: now).all())
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(result) == 50
    assert turns >= 50
