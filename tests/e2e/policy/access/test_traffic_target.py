"""Tests of TrafficTargets: permitted calls, and the form of refusals."""

import pytest

from tests.e2e.policy.applications import ECHO, HTTP
from tests.e2e.policy.calls import CLOSED, NOBODY, exchange, status_over
from tests.e2e.policy.policies import ALL, EVERYTHING, http, path, ports, routes, target, tcp
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.topology import WORKLOADS

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

V1 = WORKLOADS["v1"].address
GROUP = routes("g", path("/foo", "GET"), path("/anything.*"))


async def statuses(mesh: PolicyMesh, caller: str, *paths: str, service: str = "v1") -> list[int]:
    """Return the statuses of a caller's requests for some paths."""
    return [(await mesh.get(caller, service, path)).status for path in paths]


async def test_target_in_the_same_namespace_admits_only_matching_requests(mesh: PolicyMesh) -> None:
    """Matching requests are answered; other paths and methods get 403."""
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/client",), http("g", "m0")))
    assert await statuses(mesh, "client", "/foo", "/anything", "/foo/x") == [200, 403, 403]
    assert (await mesh.get("client", "v1", "/foo", method="POST")).status == 403


async def test_source_of_another_namespace_is_admitted_by_its_full_name(mesh: PolicyMesh) -> None:
    """An account of another namespace can be a source.

    An account with the same name in a different namespace is not admitted.
    """
    await mesh.enforce(GROUP, target("t", "shop/v1", ("office/clerk",), http("g")))
    assert await statuses(mesh, "clerk", "/foo", "/bar") == [200, 403]
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/clerk",), http("g")))
    assert await statuses(mesh, "clerk", "/foo", "/bar") == [0, 0]


async def test_target_outside_its_destination_namespace_admits_no_caller(mesh: PolicyMesh) -> None:
    """A target in another namespace than its destination is invalid (MW1016) and grants no access."""
    there = routes("g", path(".*"), namespace="office")
    wrong = target("t", "shop/v1", ("shop/client",), http("g"), namespace="office")
    await mesh.enforce(there, wrong, said=("MW1016",))
    assert await mesh.get("client", "v1", "/foo") == NOBODY
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/client",), http("g")))
    assert (await mesh.get("client", "v1", "/foo")).status == 200


async def test_every_source_of_a_target_is_admitted_and_no_other(mesh: PolicyMesh) -> None:
    """All listed sources are admitted, and an unlisted caller has no connection."""
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/client", "office/clerk"), http("g")))
    for caller in ("client", "clerk"):
        assert await statuses(mesh, caller, "/foo", "/bar") == [200, 403]
    assert await mesh.get("v2", "v1", "/foo") == NOBODY


async def test_targets_of_one_destination_are_united(mesh: PolicyMesh) -> None:
    """Overlapping targets do not restrict each other, and the same client may be in both."""
    first = target("a", "shop/v1", ("shop/client",), http("g", "m0"))
    second = target("b", "shop/v1", ("office/clerk", "shop/client"), http("g", "m1"))
    wide = target("c", "shop/v1", ("shop/v2",), http("everything"))
    await mesh.enforce(GROUP, *EVERYTHING, first, second, wide)
    assert await statuses(mesh, "client", "/foo", "/anything/1", "/bar") == [200, 200, 403]
    assert await statuses(mesh, "clerk", "/foo", "/anything/1", "/bar") == [403, 200, 403]
    assert await statuses(mesh, "v2", "/foo", "/anything/1", "/bar") == [200, 200, 200]


async def test_each_client_gets_only_the_paths_of_its_own_targets(mesh: PolicyMesh) -> None:
    """One client may call every path and the other only one path.

    Without targets, both have no connection.
    """
    one = target("one", "shop/v1", ("shop/client",), http("everything"))
    two = target("two", "shop/v1", ("office/clerk",), http("g", "m0"))
    await mesh.enforce(GROUP, *EVERYTHING, one, two)
    assert await statuses(mesh, "client", "/anything", "/foo") == [200, 200]
    assert await statuses(mesh, "clerk", "/anything", "/foo") == [403, 200]
    await mesh.enforce(GROUP, *EVERYTHING)
    assert await statuses(mesh, "client", "/anything", "/foo") == [0, 0]
    assert await statuses(mesh, "clerk", "/anything", "/foo") == [0, 0]


async def test_denied_request_is_403_if_the_client_bypasses_its_sidecar(mesh: PolicyMesh) -> None:
    """The server's sidecar denies a direct request with a valid certificate, too."""
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/client",), http("g", "m0")))
    paths = ("/foo", "/anything")
    seen = {
        name: [(await status_over(mesh.certificate(name), V1, HTTP, item)).status for item in paths]
        for name in ("client", "clerk")
    }
    assert seen == {"client": [200, 403], "clerk": [403, 403]}


async def test_denied_tcp_connection_is_closed_without_a_byte(mesh: PolicyMesh) -> None:
    """A caller without permission gets no byte, through its own sidecar or directly."""
    await mesh.enforce(ports("echo", ECHO), target("t", "shop/v1", ("shop/client",), tcp("echo")))
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
    assert await exchange(V1, ECHO, tls=mesh.certificate("client")) == "v1: hello\n"
    assert await mesh.hello("clerk", "v1", ECHO) == CLOSED
    assert await exchange(V1, ECHO, tls=mesh.certificate("clerk")) == CLOSED


async def test_plain_text_is_not_answered(mesh: PolicyMesh) -> None:
    """Without the mesh's TLS no caller is served, whatever the policy."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert await exchange(V1, ECHO) == CLOSED
    assert await exchange(V1, ECHO, tls=mesh.certificate("client")) == "v1: hello\n"


async def test_udp_route_is_invalid_and_admits_no_caller(mesh: PolicyMesh) -> None:
    """A UDPRoute is reported as MW1024, and a target that refers to its name admits no caller.

    A TCPRoute of that name admits the caller.
    """
    rule = target("t", "shop/v1", ("shop/client",), tcp("echo"))
    udp = {**ports("echo", ECHO), "kind": "UDPRoute"}
    await mesh.enforce(udp, rule, said=("MW1024",))
    assert await mesh.hello("client", "v1", ECHO) == CLOSED
    await mesh.enforce(ports("echo", ECHO), rule)
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
