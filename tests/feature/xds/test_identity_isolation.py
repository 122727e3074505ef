"""Test of two identities at one server: each gets only its own resources."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from certs.peer import read_peer
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from xds.cache import GroupKey, NodeKey
from xds.hooks import Peer
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, Resource, encode
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Node
from xds.stream_status import Variant

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
TYPES = (CLUSTER, ENDPOINT, SECRET, LISTENER, ROUTE)


class ByCommonName:
    """An authenticator by the certificate's common name, independent of the node."""

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the common name."""
        assert peer.certificate is not None
        return NodeKey(read_peer(peer.certificate).common_name)

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept any node, because the node decides nothing."""


def everything(owner: str) -> tuple[Resource, ...]:
    """Return one resource of each type, named and marked with its owner."""
    secret = secret_pb2.Secret(name=f"{owner}-secret")
    secret.tls_certificate.private_key.inline_string = f"key of {owner}"
    return (
        encode(cluster_pb2.Cluster(name=f"{owner}-cluster")),
        encode(endpoint_pb2.ClusterLoadAssignment(cluster_name=f"{owner}-endpoints")),
        encode(secret),
        encode(listener_pb2.Listener(name=f"{owner}-listener", stat_prefix=owner)),
        encode(route_pb2.RouteConfiguration(name=f"{owner}-route")),
    )


@pytest.mark.parametrize("variant", list(Variant))
async def test_client_cannot_get_another_identitys_resources(
    serve: Serve, connect: Connect, pki: Any, variant: Variant
) -> None:
    """A client requests the other's resources under the other's node id, then its own.

    The answer to its own request proves that the others would have arrived by then.
    """
    served = await serve(ByCommonName())
    served.cache.publish(
        {GroupKey(owner): Snapshot.of(everything(owner)) for owner in ("first", "second")},
        {NodeKey("u1.svc.ns"): GroupKey("first"), NodeKey("u2.svc.ns"): GroupKey("second")},
    )
    for mine, other, keys in (("first", "second", pki), ("second", "first", pki.second)):
        client = connect(served.port, variant, as_pki=keys)
        received = []
        for kind, type_url in zip(
            ("cluster", "endpoints", "secret", "listener", "route"), TYPES, strict=True
        ):
            await client.ask(type_url, f"{other}-{kind}", node=f"{other}.svc.ns")
            if variant is Variant.SOTW and type_url not in (CLUSTER, LISTENER):
                await client.ask(type_url, f"{other}-{kind}", f"{mine}-{kind}")
                received.append(await client.response())
                continue
            if type_url != ROUTE:
                received.append(await client.response())
            nonce = received[-1].nonce if received[-1].type_url == type_url else ""
            await client.ask(
                type_url,
                *([f"{other}-{kind}"] if variant is Variant.SOTW else []),
                f"{mine}-{kind}",
                nonce=nonce,
            )
            received.append(await client.response())
            await client.ask(
                type_url,
                *([f"{other}-{kind}", f"{mine}-{kind}"] if variant is Variant.SOTW else []),
                nonce=received[-1].nonce,
            )

        assert {r.type_url for r in received if r.resources} == set(TYPES)
        for response in received:
            bodies = b"".join(resource.SerializeToString() for resource in response.resources)
            assert other.encode() not in bodies
            assert len(response.resources) <= 1
