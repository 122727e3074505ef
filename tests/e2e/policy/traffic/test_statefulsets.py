"""Tests of pods with redirected traffic: headless services, virtual addresses, external destinations."""

import asyncio
import itertools

import pytest

from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.policy.applications import DATABASE, ECHO, GREETER, HTTP
from tests.e2e.policy.calls import CLOSED, NOBODY
from tests.e2e.policy.pods import ADDRESSES, API, DB, NODES, OUTSIDE, Pods
from tests.e2e.policy.policies import ALL, EVERYTHING, PERMISSIVE, config, split, target

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]

MEMBERS = NODES[:2]
"""Those whose identity the targets name."""
CALLERS = ("shop/client", "shop/node")
OPEN = (*EVERYTHING, target("t", "shop/node", CALLERS, *ALL))
TIMES = 5


def address(pods: Pods, pod: str) -> str:
    """Return the address of a pod's own name under the headless service."""
    (result,) = pods.resolve(f"{pod}.nodes.shop.svc.cluster.local")
    return result


async def test_stateful_set_pod_answers_at_its_own_name(pods: Pods) -> None:
    """By HTTP and TCP it is always that pod; at the service's virtual address it is any pod."""
    await pods.enforce(*OPEN)
    assert pods.resolve("nodes.shop") == tuple(ADDRESSES[pod] for pod in NODES)
    for pod, _ in itertools.product(MEMBERS, range(TIMES)):
        assert (await pods.get("client", address(pods, pod), HTTP)).by == pod
        greeting = await pods.hello("client", address(pods, pod), GREETER, first=True)
        assert greeting == f"{pod} speaks first\n{pod}: hello\n"
    assert {(await pods.get("client", API)).by for _ in range(20)} == set(MEMBERS)


async def test_stateful_set_pods_reach_each_other_only_with_a_policy(pods: Pods) -> None:
    """Every pod reaches every pod by its name, including itself.

    Without a policy, no other pod is reached.
    """
    await pods.enforce(*OPEN)
    for caller, pod in itertools.product(MEMBERS, MEMBERS):
        assert (await pods.get(caller, address(pods, pod), HTTP)).by == pod, caller
        assert await pods.hello(caller, address(pods, pod), GREETER, first=True) != CLOSED, caller
    await pods.enforce()
    for caller, pod in itertools.permutations(MEMBERS, 2):
        assert await pods.get(caller, address(pods, pod), HTTP) == NOBODY, caller
        assert await pods.hello(caller, address(pods, pod), GREETER, first=True) == CLOSED, caller


async def test_stateful_set_pod_of_another_account_is_not_reached(pods: Pods) -> None:
    """It is behind the same service, but no target names its identity. In permissive mode it is reached."""
    await pods.enforce(*OPEN)
    rogue = address(pods, NODES[-1])
    assert await pods.get("client", rogue, HTTP) == NOBODY
    assert await pods.hello("client", rogue, GREETER, first=True) == CLOSED
    await pods.enforce(PERMISSIVE)
    assert (await pods.get("client", rogue, HTTP)).by == NODES[-1]


async def test_concurrent_requests_reach_their_own_pods(pods: Pods) -> None:
    """Connections to several pods at the same time are not mixed up."""
    await pods.enforce(*OPEN)
    wanted = list(MEMBERS) * 10
    answers = await asyncio.gather(
        *(pods.get("client", address(pods, pod), HTTP, f"/{pod}") for pod in wanted)
    )
    assert [answer.by for answer in answers] == wanted


async def test_split_of_a_headless_service_replaces_the_called_pod(pods: Pods) -> None:
    """With the split, its backends answer instead of the called pod."""
    await pods.enforce(*OPEN, split("s", "nodes", {"api": 1}))
    result = {(await pods.get("client", ADDRESSES[MEMBERS[0]], HTTP)).by for _ in range(20)}
    assert result == set(MEMBERS)
    await pods.enforce(*OPEN)
    result = {(await pods.get("client", ADDRESSES[MEMBERS[0]], HTTP)).by for _ in range(20)}
    assert result == {MEMBERS[0]}


async def test_server_first_protocol_works_at_a_virtual_address(pods: Pods) -> None:
    """The port is known as server-first by its number alone.

    The greeting passes redirection and both sidecars.
    """
    await pods.enforce(*OPEN)
    greeting = await pods.hello("client", DB, DATABASE, first=True)
    assert greeting in {f"{pod} speaks first\n{pod}: hello\n" for pod in MEMBERS}
    await pods.enforce()
    assert await pods.hello("client", DB, DATABASE, first=True) == CLOSED


async def test_port_without_a_service_is_not_reached(pods: Pods) -> None:
    """The port is closed although the application listens there and a target admits every port."""
    await pods.enforce(*OPEN)
    assert await pods.hello("client", address(pods, MEMBERS[0]), ECHO) == CLOSED
    assert await pods.hello("client", address(pods, MEMBERS[0]), GREETER, first=True) != CLOSED


async def test_host_outside_the_mesh_is_reached_only_with_egress_enabled(pods: Pods) -> None:
    """Calls to the mesh's pods work in both cases."""
    await pods.enforce(*OPEN)
    assert await pods.get("client", OUTSIDE, HTTP) == NOBODY
    await pods.enforce(*OPEN, config(traffic={"enableEgress": True}))
    assert (await pods.get("client", OUTSIDE, HTTP)).by == "outside"
    assert (await pods.get("client", address(pods, MEMBERS[0]), HTTP)).by == MEMBERS[0]


async def test_enabled_egress_does_not_pass_denied_mesh_calls(pods: Pods) -> None:
    """A denied call to a service of the mesh ends in the client's sidecar and does not pass through."""
    out = "cluster.passthrough-outbound.upstream_cx_total"
    egress = config(traffic={"enableEgress": True})
    await pods.enforce(egress)
    before = await pods.live.stat("client", out)
    (virtual,) = pods.resolve("apex.shop")
    for at, port in ((API, 80), (DB, DATABASE), (virtual, 80), (virtual, DATABASE)):
        assert await pods.get("client", at, port) == NOBODY
        assert await pods.hello("client", at, port, first=True) == CLOSED
    assert await pods.live.stat("client", out) == before
    assert (await pods.get("client", OUTSIDE, HTTP)).by == "outside"
    assert await pods.live.stat("client", out) == before + 1
    await pods.enforce(*OPEN, egress)
    assert (await pods.get("client", API)).status == 200
    assert (await pods.hello("client", DB, DATABASE, first=True)).endswith(": hello\n")
    assert await pods.live.stat("client", out) == before + 1


async def test_caller_outside_the_mesh_is_not_served(pods: Pods) -> None:
    """A machine without a sidecar on the same network gets no answer from a pod, also in permissive mode."""
    for policy in (OPEN, (*OPEN, PERMISSIVE)):
        await pods.enforce(*policy)
        assert await pods.get("switch", ADDRESSES[MEMBERS[0]], HTTP) == NOBODY
        assert await pods.hello("switch", ADDRESSES[MEMBERS[0]], GREETER) == CLOSED
    assert (await pods.get("client", ADDRESSES[MEMBERS[0]], HTTP)).by == MEMBERS[0]
