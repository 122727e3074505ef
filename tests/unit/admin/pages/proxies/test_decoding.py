"""Configuration is decoded in Envoy's words, and secrets are not."""

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


def test_a_secret_shows_its_certificate_and_not_its_key() -> None:
    """Neither as bytes nor as base64."""
    shown = decode(_secret())
    assert shown == {
        "name": "service-cert",
        "tls_certificate": {
            "certificate_chain": {"inline_string": "CHAIN"},
            "private_key": "[redacted]",
        },
    }
    assert "secret\\n" not in json.dumps(shown)


def test_the_unmasked_form_would_show_it() -> None:
    """Negative control: the key is in the bytes that are decoded."""
    assert KEY in _secret().body


def test_typed_extensions_are_decoded_inside() -> None:
    """A transport socket is readable, not base64."""
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


def test_what_cannot_be_decoded_is_said_in_its_place() -> None:
    """A page does not fail for one resource."""
    cluster = encode(cluster_pb2.Cluster(name="c"))
    body = cluster.body.replace(b"cluster.v3.Cluster", b"cluster.v3.Clustex")
    broken = Resource(TypeUrl("x"), ResourceName("c"), Version("1"), body)
    shown = decode(broken)
    assert isinstance(shown, dict)
    assert list(shown) == ["undecodable"]


def test_private_keys_are_masked_wherever_they_stand() -> None:
    """Under another name than expected, too."""
    assert masked({"filename": "-----BEGIN EC PRIVATE KEY-----", "password": {"a": 1}, "list": [1, "x"]}) == {
        "filename": "[redacted]",
        "password": "[redacted]",
        "list": [1, "x"],
    }
