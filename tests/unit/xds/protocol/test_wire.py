"""Tests of the wire format: our encoded and decoded messages agree with the generated protos."""

from collections.abc import Callable
from typing import Any as Any_

import pytest
from google.protobuf.any_pb2 import Any
from hypothesis import given
from hypothesis import strategies as st

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.protocol.resources.resource import CLUSTER, SECRET, Resource, ResourceName, TypeUrl, Version
from xds.protocol.wire import (
    ERROR_LIMIT,
    WITHHELD,
    DeltaRequest,
    Node,
    Nonce,
    Rejection,
    Request,
    Response,
    WireError,
    delta_response_body,
    read_delta_request,
    read_request,
    response_body,
    with_nonce,
)


def test_n4_response_equals_the_encoding_of_protobuf(make: Callable[..., Resource]) -> None:
    """The generated class reads every field, including the control plane's identifier."""
    resources = (make(CLUSTER, "a"), make(CLUSTER, "b", 7))
    response = Response(CLUSTER, Version("v1"), Nonce("12"), resources)

    parsed = discovery_pb2.DiscoveryResponse.FromString(
        with_nonce(response_body(response, "cp"), Nonce("12"))
    )

    assert parsed == discovery_pb2.DiscoveryResponse(
        version_info="v1",
        type_url=CLUSTER,
        nonce="12",
        control_plane={"identifier": "cp"},
        resources=[Any.FromString(resource.body) for resource in resources],
    )


def test_n4_delta_response_equals_the_encoding_of_protobuf(make: Callable[..., Resource]) -> None:
    """The generated class reads each resource with its name and version, and the removals."""
    resource = make(CLUSTER, "a" * 300)
    response = Response(
        CLUSTER, Version("v2"), Nonce("3"), (resource,), (ResourceName("x"), ResourceName("y"))
    )

    parsed = discovery_pb2.DeltaDiscoveryResponse.FromString(
        with_nonce(delta_response_body(response, "cp"), Nonce("3"))
    )

    assert parsed == discovery_pb2.DeltaDiscoveryResponse(
        system_version_info="v2",
        type_url=CLUSTER,
        nonce="3",
        control_plane={"identifier": "cp"},
        removed_resources=["x", "y"],
        resources=[
            discovery_pb2.Resource(
                name="a" * 300, version=resource.version, resource=Any.FromString(resource.body)
            )
        ],
    )


def test_n2_used_fields_of_a_request_are_read() -> None:
    """Names keep their order.

    The error is truncated to its first kilobyte (N2), and the node has id, cluster and program.
    """
    message = discovery_pb2.DiscoveryRequest(
        type_url=CLUSTER, resource_names=["b", "a"], version_info="v", response_nonce="4"
    )
    message.node.id, message.node.cluster, message.node.user_agent_name = "n", "c", "envoy"
    message.node.user_agent_build_version.version.major_number = 1
    message.error_detail.code, message.error_detail.message = 13, "x" * 5000

    assert read_request(message.SerializeToString()) == Request(
        CLUSTER,
        (ResourceName("b"), ResourceName("a")),
        Version("v"),
        Nonce("4"),
        Rejection(13, "x" * ERROR_LIMIT),
        Node("n", "c", "envoy 1.0.0"),
    )


def test_used_fields_of_a_delta_request_are_read() -> None:
    """The request has both lists of names and the client's versions; a missing node is None."""
    message = discovery_pb2.DeltaDiscoveryRequest(
        type_url=CLUSTER,
        resource_names_subscribe=["a"],
        resource_names_unsubscribe=["b"],
        initial_resource_versions={"a": "1"},
    )

    assert read_delta_request(message.SerializeToString()) == DeltaRequest(
        CLUSTER, (ResourceName("a"),), (ResourceName("b"),), {ResourceName("a"): Version("1")}
    )


@pytest.mark.parametrize("read", [read_request, read_delta_request])
def test_bytes_that_are_no_request_raise_wire_error(read: Callable[[bytes], object]) -> None:
    """The server treats a WireError as the client's fault."""
    with pytest.raises(WireError):
        read(b"\xff\xff\xff")


@given(st.text(max_size=300), st.text(max_size=20), st.lists(st.text(max_size=200), max_size=5))
def test_any_text_survives_encoding_and_parsing(version: str, nonce: str, removed: list[str]) -> None:
    """Length prefixes are correct for any length and any character."""
    names = tuple(ResourceName(name) for name in removed if name)
    response = Response(TypeUrl("t"), Version(version), Nonce(nonce), (), names)

    parsed = discovery_pb2.DeltaDiscoveryResponse.FromString(
        with_nonce(delta_response_body(response, ""), Nonce(nonce))
    )

    assert (parsed.system_version_info, parsed.nonce, tuple(parsed.removed_resources)) == (
        version,
        nonce,
        names,
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Failed to load certificate chain from <inline>", "Failed to load certificate chain from <inline>"),
        ("type mismatch: goo.gle/debugstr [type.googleapis.com/x] { private_key { } }", WITHHELD),
        ("bad: -----BEGIN PRIVATE KEY-----", WITHHELD),
    ],
)
@pytest.mark.parametrize("kind", [discovery_pb2.DiscoveryRequest, discovery_pb2.DeltaDiscoveryRequest])
def test_n2_error_about_a_secret_is_kept_without_its_content(kind: Any_, said: str, kept: str) -> None:
    """Text that may be a dump of the secret is withheld, because logs and debug pages show errors."""
    request = kind(type_url=SECRET, response_nonce="1")
    request.error_detail.code, request.error_detail.message = 13, said
    read = read_request if kind is discovery_pb2.DiscoveryRequest else read_delta_request

    assert read(request.SerializeToString()).rejection == Rejection(13, kept)
