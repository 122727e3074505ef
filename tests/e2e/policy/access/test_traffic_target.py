"""TrafficTargets: who may call what, and what becomes of those who may not."""

import pytest

from tests.e2e.policy.applications import ECHO, HTTP
from tests.e2e.policy.calls import CLOSED, NOBODY, exchange, status_over
from tests.e2e.policy.policies import ALL, EVERYTHING, http, path, ports, routes, target, tcp
from tests.e2e.policy.running import PolicyMesh
from tests.e2e.policy.topology import WORKLOADS

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

V1 = WORKLOADS["v1"].address
GROUP = routes("g", path("/foo", "GET"), path("/anything.*"))


async def statuses(mesh: PolicyMesh, caller: str, *paths: str, service: str = "v1") -> list[int]:
    """Return what a caller gets on some paths."""
    return [(await mesh.get(caller, service, path)).status for path in paths]


async def test_same_namespace(mesh: PolicyMesh) -> None:
    """What the rules admit is answered, what they do not is 403; POST where GET is meant as well."""
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/client",), http("g", "m0")))
    assert await statuses(mesh, "client", "/foo", "/anything", "/foo/x") == [200, 403, 403]
    assert (await mesh.get("client", "v1", "/foo", method="POST")).status == 403


async def test_cross_namespace(mesh: PolicyMesh) -> None:
    """A source of another namespace is a source; an account of the same name elsewhere is not."""
    await mesh.enforce(GROUP, target("t", "shop/v1", ("office/clerk",), http("g")))
    assert await statuses(mesh, "clerk", "/foo", "/bar") == [200, 403]
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/clerk",), http("g")))
    assert await statuses(mesh, "clerk", "/foo", "/bar") == [0, 0]


async def test_a_target_in_another_namespace_than_its_destination(mesh: PolicyMesh) -> None:
    """It allows nothing, whoever wrote it."""
    there = routes("g", path(".*"), namespace="office")
    wrong = target("t", "shop/v1", ("shop/client",), http("g"), namespace="office")
    await mesh.enforce(there, wrong, said=("MW1016",))
    assert await mesh.get("client", "v1", "/foo") == NOBODY
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/client",), http("g")))
    assert (await mesh.get("client", "v1", "/foo")).status == 200


async def test_several_sources(mesh: PolicyMesh) -> None:
    """Every source of a target is admitted, and nobody else."""
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/client", "office/clerk"), http("g")))
    for caller in ("client", "clerk"):
        assert await statuses(mesh, caller, "/foo", "/bar") == [200, 403]
    assert await mesh.get("v2", "v1", "/foo") == NOBODY


async def test_several_targets_of_one_destination_unite(mesh: PolicyMesh) -> None:
    """Neither takes from the other, though their paths overlap; the same client may stand in both."""
    first = target("a", "shop/v1", ("shop/client",), http("g", "m0"))
    second = target("b", "shop/v1", ("office/clerk", "shop/client"), http("g", "m1"))
    wide = target("c", "shop/v1", ("shop/v2",), http("everything"))
    await mesh.enforce(GROUP, *EVERYTHING, first, second, wide)
    assert await statuses(mesh, "client", "/foo", "/anything/1", "/bar") == [200, 200, 403]
    assert await statuses(mesh, "clerk", "/foo", "/anything/1", "/bar") == [403, 200, 403]
    assert await statuses(mesh, "v2", "/foo", "/anything/1", "/bar") == [200, 200, 200]


async def test_client_one_anything_client_two_only_foo(mesh: PolicyMesh) -> None:
    """One may call all, the other is refused but on its path; without the targets neither has a way."""
    one = target("one", "shop/v1", ("shop/client",), http("everything"))
    two = target("two", "shop/v1", ("office/clerk",), http("g", "m0"))
    await mesh.enforce(GROUP, *EVERYTHING, one, two)
    assert await statuses(mesh, "client", "/anything", "/foo") == [200, 200]
    assert await statuses(mesh, "clerk", "/anything", "/foo") == [403, 200]
    await mesh.enforce(GROUP, *EVERYTHING)
    assert await statuses(mesh, "client", "/anything", "/foo") == [0, 0]
    assert await statuses(mesh, "clerk", "/anything", "/foo") == [0, 0]


async def test_a_denied_request_is_403_past_the_own_sidecar(mesh: PolicyMesh) -> None:
    """A workload that calls the server's sidecar itself, with its certificate, is denied there again."""
    await mesh.enforce(GROUP, target("t", "shop/v1", ("shop/client",), http("g", "m0")))
    paths = ("/foo", "/anything")
    seen = {
        name: [(await status_over(mesh.certificate(name), V1, HTTP, item)).status for item in paths]
        for name in ("client", "clerk")
    }
    assert seen == {"client": [200, 403], "clerk": [403, 403]}


async def test_denied_tcp_is_closed(mesh: PolicyMesh) -> None:
    """Who is not admitted to a TCP port gets not one byte, through the own sidecar or past it."""
    await mesh.enforce(ports("echo", ECHO), target("t", "shop/v1", ("shop/client",), tcp("echo")))
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
    assert await exchange(V1, ECHO, tls=mesh.certificate("client")) == "v1: hello\n"
    assert await mesh.hello("clerk", "v1", ECHO) == CLOSED
    assert await exchange(V1, ECHO, tls=mesh.certificate("clerk")) == CLOSED


async def test_plain_text_is_not_answered(mesh: PolicyMesh) -> None:
    """Without the mesh's TLS nobody is served, whatever the policy."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert await exchange(V1, ECHO) == CLOSED
    assert await exchange(V1, ECHO, tls=mesh.certificate("client")) == "v1: hello\n"


async def test_udp_route_is_refused_by_code(mesh: PolicyMesh) -> None:
    """It is not in force, and a target that names one of its name admits nothing; as a TCPRoute it does."""
    rule = target("t", "shop/v1", ("shop/client",), tcp("echo"))
    udp = {**ports("echo", ECHO), "kind": "UDPRoute"}
    await mesh.enforce(udp, rule, said=("MW1024",))
    assert await mesh.hello("client", "v1", ECHO) == CLOSED
    await mesh.enforce(ports("echo", ECHO), rule)
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
