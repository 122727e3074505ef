"""Tests of decoded configuration: Envoy's field names, without secrets."""

import json

from meshwright.admin.pages.proxies.decoding import decode, decoded, masked
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import common_pb2, secret_pb2, tls_pb2
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version, encode
from xds.protocol.resources.snapshot import Snapshot

KEY = b"-----BEGIN PRIVATE KEY-----\nMIIBsecret\n-----END PRIVATE KEY-----\n"


def _secret() -> Resource:
    return encode(
        secret_pb2.Secret(
            name="service-cert",
            tls_certificate=common_pb2.TlsCertificate(
                certificate_chain=base_pb2.DataSource(inline_string="CHAIN"),
                private_key=base_pb2.DataSource(inline_bytes=KEY),
            ),
        )
    )


def test_secret_shows_its_certificate_without_its_key() -> None:
    """A secret shows its certificate chain, and its private key is redacted."""
    shown = decode(_secret())
    assert shown == {
        "name": "service-cert",
        "tls_certificate": {
            "certificate_chain": {"inline_string": "CHAIN"},
            "private_key": "[redacted]",
        },
    }
    assert "secret\\n" not in json.dumps(shown)


def test_secret_contains_its_key_before_decoding() -> None:
    """Negative control: the encoded resource contains the key."""
    assert KEY in _secret().body


def test_typed_extension_is_decoded() -> None:
    """A typed configuration, for example a transport socket, is decoded and not shown as base64."""
    cluster = cluster_pb2.Cluster(name="c")
    cluster.transport_socket.name = "tls"
    context = tls_pb2.UpstreamTlsContext(sni="a.b")
    cluster.transport_socket.typed_config.Pack(context)
    shown = decoded(Snapshot.of([encode(cluster)]))["cluster"]
    assert shown == {
        "c": {
            "version": encode(cluster).version,
            "resource": {
                "name": "c",
                "transport_socket": {
                    "name": "tls",
                    "typed_config": {
                        "@type": f"type.googleapis.com/{context.DESCRIPTOR.full_name}",
                        "sni": "a.b",
                    },
                },
            },
        }
    }


def test_undecodable_resource_is_shown_as_such() -> None:
    """A resource that cannot be decoded is replaced by the error, so that the page does not fail."""
    cluster = encode(cluster_pb2.Cluster(name="c"))
    body = cluster.body.replace(b"cluster.v3.Cluster", b"cluster.v3.Clustex")
    broken = Resource(TypeUrl("x"), ResourceName("c"), Version("1"), body)
    shown = decode(broken)
    assert isinstance(shown, dict)
    assert list(shown) == ["undecodable"]


def test_private_keys_are_masked_in_every_field() -> None:
    """A value that looks like a private key is masked under any field name.

    A password is masked by its name.
    """
    assert masked({"filename": "-----BEGIN EC PRIVATE KEY-----", "password": {"a": 1}, "list": [1, "x"]}) == {
        "filename": "[redacted]",
        "password": "[redacted]",
        "list": [1, "x"],
    }
