"""Bodies that stay for long take less memory, and are sent as they were."""

import hashlib

import pytest

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from xds.protocol.resources.packing import LEAST, MOST, packed, unpacked
from xds.protocol.resources.resource import encode


@pytest.mark.parametrize("size", [0, LEAST - 1, LEAST, MOST, MOST + 1])
def test_what_is_packed_is_unpacked_to_what_it_was(size: int) -> None:
    """Of whatever length; what is neither short nor very long takes less meanwhile."""
    plain = (b"%d of a listener's filter chains, and the next; " % size * MOST)[:size]
    kept = packed(plain, "listener")
    assert unpacked(kept, "listener") == plain
    assert (len(kept) < len(plain)) is (LEAST <= size <= MOST)


def test_bytes_that_look_packed_and_are_not_stay_as_they_are() -> None:
    """Which of the two they are is known of the object, not guessed from its first bytes."""
    looks = bytes(packed(b"x" * LEAST, "listener"))
    assert unpacked(looks, "listener") == looks


@pytest.mark.parametrize("like", [b"", b"unlike "])
def test_what_is_packed_after_another_of_its_kind_takes_what_it_differs_by(like: bytes) -> None:
    """A group's listener is much like another's: it is unpacked by the first, whatever was packed since."""
    lines = [b"chain %d is for %s; " % (n, hashlib.sha256(b"%d" % n).hexdigest().encode()) for n in range(99)]
    kind = f"like {like!r}"
    first = b"".join(lines)
    second = b"".join(like + line for line in lines) + b"and one more"
    kept = [packed(each, kind) for each in (first, second, first)]
    assert [unpacked(each, kind) for each in kept] == [first, second, first]
    assert len(kept[1]) < len(second) // (5 if like else 50)
    assert len(kept[2]) == len(kept[0]) < len(first) // 50


def test_the_first_of_a_kind_may_be_longer_than_what_zlib_looks_back() -> None:
    """Both ways it is the end of it that counts."""
    first = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(MOST // 32))
    others = (first[1:], first[: MOST // 2] + b"z" * (MOST // 2), first[::-1])
    kept = [packed(each, "long") for each in (first, *others)]
    assert [unpacked(each, "long") for each in kept] == [first, *others]


def test_kinds_do_not_mix() -> None:
    """Each is packed by the first of its own, of which another kind knows nothing."""
    words = hashlib.sha512(b"words").digest() * 5
    others = hashlib.sha512(b"others").digest() * 5
    kept = packed(words, "one"), packed(others, "other")
    assert (unpacked(kept[0], "one"), unpacked(kept[1], "other")) == (words, others)


def test_a_long_resource_is_kept_packed_and_has_the_body_and_version_of_what_was_encoded() -> None:
    """A virtual host for each of fifty services; a cluster that is but a name is not worth it."""
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
