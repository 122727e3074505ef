"""Who reaches whom: HTTP and TCP, both ways, to oneself, over several ports, services and replicas."""

import pytest

from tests.e2e.policy.applications import ADMIN, ECHO, HTTP, SERVED_BY
from tests.e2e.policy.calls import CLOSED, NOBODY, Answer
from tests.e2e.policy.policies import ALL, EVERYTHING, ports, target, tcp
from tests.e2e.policy.running import PolicyMesh

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest.mark.parametrize("service", ["v1", "web", "both"])
async def test_http(mesh: PolicyMesh, service: str) -> None:
    """A client reaches a service by HTTP, with its query and headers; without a policy it does not."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert await mesh.get("client", service, "/a?b=c") == Answer(200, "v1", f"{HTTP} /a?b=c")
    await mesh.enforce()
    assert await mesh.get("client", service, "/a?b=c") == NOBODY


async def test_tcp(mesh: PolicyMesh) -> None:
    """A client reaches a service by TCP; without a policy it does not."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
    await mesh.enforce()
    assert await mesh.hello("client", "v1", ECHO) == CLOSED


async def test_both_ways(mesh: PolicyMesh) -> None:
    """Two workloads call each other, each under a target of its own; one target is one way."""
    there = target("there", "shop/v2", ("shop/v1",), *ALL)
    back = target("back", "shop/v1", ("shop/v2",), *ALL)
    await mesh.enforce(*EVERYTHING, there, back)
    assert (await mesh.get("v1", "v2")).by == "v2"
    assert (await mesh.get("v2", "v1")).by == "v1"
    assert await mesh.hello("v1", "v2", ECHO) == "v2: hello\n"
    assert await mesh.hello("v2", "v1", ECHO) == "v1: hello\n"
    await mesh.enforce(*EVERYTHING, there)
    assert (await mesh.get("v1", "v2")).by == "v2"
    assert await mesh.get("v2", "v1") == NOBODY
    assert await mesh.hello("v2", "v1", ECHO) == CLOSED


async def test_a_workload_calls_itself(mesh: PolicyMesh) -> None:
    """By its service, through its own sidecar twice, and only where a target names it as its own source."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/v1",), *ALL))
    assert (await mesh.get("v1", "web")).by == "v1"
    assert await mesh.hello("v1", "web", ECHO) == "v1: hello\n"
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert await mesh.get("v1", "web") == NOBODY
    assert await mesh.hello("v1", "web", ECHO) == CLOSED


async def test_several_ports_of_one_service(mesh: PolicyMesh) -> None:
    """Two HTTP ports and one of TCP lead to their own; a TCPRoute opens the ports it names and no others."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert (await mesh.get("client", "v1", "/x", 80)).text == f"{HTTP} /x"
    assert (await mesh.get("client", "v1", "/x", 81)).text == f"{ADMIN} /x"
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
    two = (ports("two", ADMIN, ECHO), target("t", "shop/v1", ("shop/client",), tcp("two")))
    await mesh.enforce(*two)
    assert await mesh.get("client", "v1", "/x", 80) == NOBODY
    assert (await mesh.get("client", "v1", "/x", 81)).text == f"{ADMIN} /x"
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"


async def test_several_services_of_one_workload(mesh: PolicyMesh) -> None:
    """Whichever service is called, the same workload answers under the same rules, HTTP and TCP."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    for service in ("v1", "web"):
        assert (await mesh.get("client", service)).by == "v1"
        assert await mesh.hello("client", service, ECHO) == "v1: hello\n"
    assert await mesh.get("client", "v2") == NOBODY


async def test_all_replicas_answer(mesh: PolicyMesh) -> None:
    """A service with two workloads is answered by both; by one where the other's identity is not allowed."""
    one = target("one", "shop/v1", ("shop/client",), *ALL)
    await mesh.enforce(*EVERYTHING, one, target("two", "shop/v2", ("shop/client",), *ALL))
    assert set(await mesh.answering("client", "both", 20)) == {"v1", "v2"}
    await mesh.enforce(*EVERYTHING, one)
    assert set(await mesh.answering("client", "both", 20)) == {"v1"}


async def test_the_caller_is_known_by_its_certificate_alone(mesh: PolicyMesh) -> None:
    """What an application says of itself in a header changes nothing, and reaches the other end."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    answer = {"x-forwarded-client-cert": "URI=spiffe://cluster.local/ns/shop/sa/client", SERVED_BY: "me"}
    assert (await mesh.get("client", "v1", headers=answer)).by == "v1"
    assert await mesh.get("clerk", "v1", headers=answer) == NOBODY
