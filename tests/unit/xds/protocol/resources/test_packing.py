"""Tests of packed resource bodies: less memory while they are kept, and the same bytes when they are sent."""

import hashlib

import pytest

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from xds.protocol.resources.packing import LEAST, MOST, packed, unpacked
from xds.protocol.resources.resource import encode


@pytest.mark.parametrize("size", [0, LEAST - 1, LEAST, MOST, MOST + 1])
def test_packed_bytes_are_unpacked_unchanged_for_any_length(size: int) -> None:
    """Only bytes between the two bounds of length, which are included, become shorter."""
    plain = (b"%d of a listener's filter chains, and the next; " % size * MOST)[:size]
    kept = packed(plain, "listener")
    assert unpacked(kept, "listener") == plain
    assert (len(kept) < len(plain)) is (LEAST <= size <= MOST)


def test_plain_bytes_that_look_packed_are_not_unpacked() -> None:
    """The object's class shows whether bytes are packed, not their beginning."""
    looks = bytes(packed(b"x" * LEAST, "listener"))
    assert unpacked(looks, "listener") == looks


@pytest.mark.parametrize("like", [b"", b"unlike "])
def test_bytes_like_an_earlier_body_of_their_kind_are_packed_to_the_difference(like: bytes) -> None:
    """Listeners of different groups are much alike.

    Each is unpacked with the first of its kind, whatever was packed later.
    """
    lines = [b"chain %d is for %s; " % (n, hashlib.sha256(b"%d" % n).hexdigest().encode()) for n in range(99)]
    kind = f"like {like!r}"
    first = b"".join(lines)
    second = b"".join(like + line for line in lines) + b"and one more"
    kept = [packed(item, kind) for item in (first, second, first)]
    assert [unpacked(item, kind) for item in kept] == [first, second, first]
    assert len(kept[1]) < len(second) // (5 if like else 50)
    assert len(kept[2]) == len(kept[0]) < len(first) // 50


def test_first_body_of_a_kind_may_be_longer_than_the_window_of_zlib() -> None:
    """Packing and unpacking both use the end of the first body."""
    first = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(MOST // 32))
    others = (first[1:], first[: MOST // 2] + b"z" * (MOST // 2), first[::-1])
    kept = [packed(item, "long") for item in (first, *others)]
    assert [unpacked(item, "long") for item in kept] == [first, *others]


def test_bodies_of_different_kinds_are_packed_independently() -> None:
    """Each body is packed with the first of its own kind."""
    words = hashlib.sha512(b"words").digest() * 5
    others = hashlib.sha512(b"others").digest() * 5
    kept = packed(words, "one"), packed(others, "other")
    assert (unpacked(kept[0], "one"), unpacked(kept[1], "other")) == (words, others)


def test_long_resource_is_kept_packed_with_the_encoded_body_and_version() -> None:
    """A route configuration with fifty hosts is packed; a cluster with only a name is too short."""
    hosts = [route_components_pb2.VirtualHost(name=f"host-{n}", domains=[f"{n}.shop"]) for n in range(50)]
    message = route_pb2.RouteConfiguration(name="long", virtual_hosts=hosts)
    resource = encode(message)
    assert message.SerializeToString(deterministic=True) in resource.body
    assert resource.version == hashlib.sha256(resource.body).hexdigest()[:16]
    assert len(resource.kept) < len(resource.body) // 2
    short = encode(cluster_pb2.Cluster(name="short"))
    assert short.kept is short.body


def test_secret_is_not_packed() -> None:
    """Packing does not shorten a key, and would leave intermediate copies of it in memory."""
    secret = secret_pb2.Secret(name="key")
    secret.tls_certificate.private_key.inline_bytes = b"k" * LEAST
    resource = encode(secret)
    assert resource.kept is resource.body
