"""Tests of the client's view of each outcome: the table of docs/policy/policy.md, cell by cell."""

import socket

import pytest

from tests.e2e.policy.applications import ECHO, HTTP
from tests.e2e.policy.calls import CLOSED, NOBODY, exchange, status_over
from tests.e2e.policy.policies import (
    ALL,
    EVERYTHING,
    PERMISSIVE,
    http,
    path,
    ports,
    routes,
    split,
    target,
    tcp,
)
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.topology import WORKLOADS

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

V1 = WORKLOADS["v1"].address


async def test_allowed_call_gets_the_application_answer(mesh: PolicyMesh) -> None:
    """A permitted client gets the application's HTTP response and TCP bytes."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert (await mesh.get("client", "v1")).status == 200
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"


async def test_refused_call_gets_403_by_http_and_a_closed_tcp_connection(mesh: PolicyMesh) -> None:
    """The server's sidecar does not admit the caller."""
    rules = (http("g"), tcp("both"))
    await mesh.enforce(
        routes("g", path("/a")), ports("both", HTTP, ECHO), target("t", "shop/v1", ("shop/client",), *rules)
    )
    assert (await mesh.get("client", "v1", "/a")).status == 200
    assert (await mesh.get("client", "v1", "/b")).status == 403
    assert (await status_over(mesh.certificate("v2"), V1, HTTP, "/a")).status == 403
    assert await exchange(V1, ECHO, tls=mesh.certificate("v2")) == CLOSED


async def test_client_without_policy_has_no_listener_for_the_service(mesh: PolicyMesh) -> None:
    """The client's sidecar does not offer the service.

    The server's TCP port has no listener, and its HTTP port refuses each request.
    """
    await mesh.enforce()
    for port in (80, ECHO):
        with socket.socket() as client:
            assert client.connect_ex(mesh.place("client", "v1", port)) != 0
    # A TCP port without permitted callers has no listener; an HTTP port refuses each request.
    with socket.socket() as client:
        assert client.connect_ex((V1, ECHO)) != 0
    assert (await status_over(mesh.certificate("client"), V1, HTTP)).status == 403


async def test_split_to_a_service_without_permission_gets_503(mesh: PolicyMesh) -> None:
    """A request that a split sends to a service without permission gets 503. Other requests succeed."""
    some = (
        routes("some", path("/some")),
        split("s", "root", {"v2": 1}, "some"),
        split("r", "root", {"v1": 1}),
    )
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL), *some)
    assert (await mesh.get("client", "root", "/some")).status == 503
    assert (await mesh.get("client", "root", "/other")).status == 200


async def test_service_without_workloads_gets_503_in_permissive_mode(mesh: PolicyMesh) -> None:
    """In permissive mode every service is offered, and one without workloads answers 503."""
    await mesh.enforce(PERMISSIVE)
    assert (await mesh.get("client", "root")).status == 503
    assert (await mesh.get("client", "v1")).status == 200
    assert (await mesh.get("clerk", "v2")).status == 200


async def test_caller_without_a_service_certificate_fails_the_handshake(mesh: PolicyMesh) -> None:
    """The handshake fails without a certificate and with a proxy's own certificate.

    This is so in permissive mode, too.
    """
    await mesh.enforce(PERMISSIVE)
    bare, proxy = mesh.stranger(), mesh.stranger()
    folder = mesh.live.state / "client"
    proxy.load_cert_chain(folder / "proxy.pem", folder / "proxy.key")
    for context in (bare, proxy):
        assert await status_over(context, V1, HTTP) == NOBODY
        assert await exchange(V1, ECHO, tls=context) == CLOSED
    assert (await status_over(mesh.certificate("clerk"), V1, HTTP)).status == 200
    assert await exchange(V1, ECHO, tls=mesh.certificate("clerk")) == "v1: hello\n"
