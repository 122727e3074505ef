"""Bodies that stay for long take less memory, and are sent as they were."""

import hashlib

import pytest

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from xds.protocol.packing import LEAST, MOST, packed, unpacked
from xds.protocol.resource import encode


@pytest.mark.parametrize("size", [0, LEAST - 1, LEAST, MOST, MOST + 1])
def test_what_is_packed_is_unpacked_to_what_it_was(size: int) -> None:
    """Of whatever length; what is neither short nor very long takes less meanwhile."""
    plain = (b"%d of a listener's filter chains, and the next; " % size * MOST)[:size]
    kept = packed(plain)
    assert unpacked(kept) == plain
    assert (len(kept) < len(plain)) is (LEAST <= size <= MOST)


def test_bytes_that_look_packed_and_are_not_stay_as_they_are() -> None:
    """Which of the two they are is known of the object, not guessed from its first bytes."""
    looks = bytes(packed(b"x" * LEAST))
    assert unpacked(looks) == looks


def test_a_long_resource_is_kept_packed_and_has_the_body_and_version_of_what_was_encoded() -> None:
    """A virtual host for each of fifty services; a cluster is too short for it to be worth the while."""
    hosts = [route_components_pb2.VirtualHost(name=f"host-{n}", domains=[f"{n}.shop"]) for n in range(50)]
    message = route_pb2.RouteConfiguration(name="long", virtual_hosts=hosts)
    resource = encode(message)
    assert message.SerializeToString(deterministic=True) in resource.body
    assert resource.version == hashlib.sha256(resource.body).hexdigest()[:16]
    assert len(resource.kept) < len(resource.body) // 2
    short = encode(cluster_pb2.Cluster(name="short"))
    assert short.kept is short.body


def test_a_secret_is_not_packed() -> None:
    """A key has no form that is shorter, and none should stay that was made on the way."""
    secret = secret_pb2.Secret(name="key")
    secret.tls_certificate.private_key.inline_bytes = b"k" * LEAST
    resource = encode(secret)
    assert resource.kept is resource.body
