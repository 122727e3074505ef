"""Tests of reachability by HTTP and TCP: both directions, own service, several ports and replicas."""

import pytest

from tests.e2e.policy.applications import ADMIN, ECHO, HTTP, SERVED_BY
from tests.e2e.policy.calls import CLOSED, NOBODY, Answer
from tests.e2e.policy.policies import ALL, EVERYTHING, ports, target, tcp
from tests.e2e.policy.running_mesh import PolicyMesh

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest.mark.parametrize("service", ["v1", "web", "both"])
async def test_http_reaches_a_service_only_with_a_policy(mesh: PolicyMesh, service: str) -> None:
    """With a policy, the request arrives with its query; without one, the client has no connection."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert await mesh.get("client", service, "/a?b=c") == Answer(200, "v1", f"{HTTP} /a?b=c")
    await mesh.enforce()
    assert await mesh.get("client", service, "/a?b=c") == NOBODY


async def test_tcp_reaches_a_service_only_with_a_policy(mesh: PolicyMesh) -> None:
    """With a policy, the connection is answered; without one, it is closed."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
    await mesh.enforce()
    assert await mesh.hello("client", "v1", ECHO) == CLOSED


async def test_two_targets_allow_both_directions_and_one_target_allows_one(mesh: PolicyMesh) -> None:
    """Two workloads can call each other only if each direction has its own target."""
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


async def test_workload_can_call_itself_only_if_a_target_names_it_as_source(mesh: PolicyMesh) -> None:
    """A call to the workload's own service passes its sidecar twice, and needs a target like any other."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/v1",), *ALL))
    assert (await mesh.get("v1", "web")).by == "v1"
    assert await mesh.hello("v1", "web", ECHO) == "v1: hello\n"
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert await mesh.get("v1", "web") == NOBODY
    assert await mesh.hello("v1", "web", ECHO) == CLOSED


async def test_each_port_of_a_service_reaches_its_own_server_port(mesh: PolicyMesh) -> None:
    """Two HTTP ports and a TCP port reach their own server ports.

    A TCPRoute opens only the ports that it lists.
    """
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    assert (await mesh.get("client", "v1", "/x", 80)).text == f"{HTTP} /x"
    assert (await mesh.get("client", "v1", "/x", 81)).text == f"{ADMIN} /x"
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"
    two = (ports("two", ADMIN, ECHO), target("t", "shop/v1", ("shop/client",), tcp("two")))
    await mesh.enforce(*two)
    assert await mesh.get("client", "v1", "/x", 80) == NOBODY
    assert (await mesh.get("client", "v1", "/x", 81)).text == f"{ADMIN} /x"
    assert await mesh.hello("client", "v1", ECHO) == "v1: hello\n"


async def test_workload_answers_for_each_of_its_services(mesh: PolicyMesh) -> None:
    """The same workload answers under the same rules, by HTTP and TCP, whichever service is called."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    for service in ("v1", "web"):
        assert (await mesh.get("client", service)).by == "v1"
        assert await mesh.hello("client", service, ECHO) == "v1: hello\n"
    assert await mesh.get("client", "v2") == NOBODY


async def test_service_is_answered_by_all_its_permitted_replicas(mesh: PolicyMesh) -> None:
    """Both workloads of a service answer, or only one if the other's identity is not permitted."""
    one = target("one", "shop/v1", ("shop/client",), *ALL)
    await mesh.enforce(*EVERYTHING, one, target("two", "shop/v2", ("shop/client",), *ALL))
    assert set(await mesh.answering("client", "both", 20)) == {"v1", "v2"}
    await mesh.enforce(*EVERYTHING, one)
    assert set(await mesh.answering("client", "both", 20)) == {"v1"}


async def test_caller_is_identified_by_its_certificate_only(mesh: PolicyMesh) -> None:
    """Headers in which an application claims an identity do not change the decision."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    answer = {"x-forwarded-client-cert": "URI=spiffe://cluster.local/ns/shop/sa/client", SERVED_BY: "me"}
    assert (await mesh.get("client", "v1", headers=answer)).by == "v1"
    assert await mesh.get("clerk", "v1", headers=answer) == NOBODY
