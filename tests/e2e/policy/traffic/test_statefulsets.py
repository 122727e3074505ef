"""Pods behind redirected traffic: headless services, virtual addresses, what is not in the mesh."""

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
    """Return where a pod is by its own name under the headless service."""
    (result,) = pods.resolve(f"{pod}.nodes.shop.svc.cluster.local")
    return result


async def test_each_pod_answers_at_its_own_name(pods: Pods) -> None:
    """By HTTP and by TCP it is that very pod, every time; by the service's virtual address it is any."""
    await pods.enforce(*OPEN)
    assert pods.resolve("nodes.shop") == tuple(ADDRESSES[pod] for pod in NODES)
    for pod, _ in itertools.product(MEMBERS, range(TIMES)):
        assert (await pods.get("client", address(pods, pod), HTTP)).by == pod
        greeting = await pods.hello("client", address(pods, pod), GREETER, first=True)
        assert greeting == f"{pod} speaks first\n{pod}: hello\n"
    assert {(await pods.get("client", API)).by for _ in range(20)} == set(MEMBERS)


async def test_pods_form_a_quorum(pods: Pods) -> None:
    """Every pod reaches every pod by its name, itself among them, and nobody without a policy."""
    await pods.enforce(*OPEN)
    for caller, pod in itertools.product(MEMBERS, MEMBERS):
        assert (await pods.get(caller, address(pods, pod), HTTP)).by == pod, caller
        assert await pods.hello(caller, address(pods, pod), GREETER, first=True) != CLOSED, caller
    await pods.enforce()
    for caller, pod in itertools.permutations(MEMBERS, 2):
        assert await pods.get(caller, address(pods, pod), HTTP) == NOBODY, caller
        assert await pods.hello(caller, address(pods, pod), GREETER, first=True) == CLOSED, caller


async def test_a_pod_of_another_account_is_not_reached(pods: Pods) -> None:
    """It stands behind the same service, and no target names its identity; in permissive mode it is there."""
    await pods.enforce(*OPEN)
    rogue = address(pods, NODES[-1])
    assert await pods.get("client", rogue, HTTP) == NOBODY
    assert await pods.hello("client", rogue, GREETER, first=True) == CLOSED
    await pods.enforce(PERMISSIVE)
    assert (await pods.get("client", rogue, HTTP)).by == NODES[-1]


async def test_open_connections_stay_with_their_pod(pods: Pods) -> None:
    """Connections to several pods at once are not mixed up."""
    await pods.enforce(*OPEN)
    wanted = list(MEMBERS) * 10
    answers = await asyncio.gather(
        *(pods.get("client", address(pods, pod), HTTP, f"/{pod}") for pod in wanted)
    )
    assert [answer.by for answer in answers] == wanted


async def test_a_headless_apex(pods: Pods) -> None:
    """Where a split says who answers, the pod that was called does not."""
    await pods.enforce(*OPEN, split("s", "nodes", {"api": 1}))
    result = {(await pods.get("client", ADDRESSES[MEMBERS[0]], HTTP)).by for _ in range(20)}
    assert result == set(MEMBERS)
    await pods.enforce(*OPEN)
    result = {(await pods.get("client", ADDRESSES[MEMBERS[0]], HTTP)).by for _ in range(20)}
    assert result == {MEMBERS[0]}


async def test_a_server_that_speaks_first_at_a_virtual_address(pods: Pods) -> None:
    """Its port is known by its number alone; the greeting passes redirection and both sidecars."""
    await pods.enforce(*OPEN)
    greeting = await pods.hello("client", DB, DATABASE, first=True)
    assert greeting in {f"{pod} speaks first\n{pod}: hello\n" for pod in MEMBERS}
    await pods.enforce()
    assert await pods.hello("client", DB, DATABASE, first=True) == CLOSED


async def test_a_port_that_no_service_has(pods: Pods) -> None:
    """It is not reached, though the application listens there and a target admits every port."""
    await pods.enforce(*OPEN)
    assert await pods.hello("client", address(pods, MEMBERS[0]), ECHO) == CLOSED
    assert await pods.hello("client", address(pods, MEMBERS[0]), GREETER, first=True) != CLOSED


async def test_egress(pods: Pods) -> None:
    """What is not in the mesh is reached only where the configuration says so."""
    await pods.enforce(*OPEN)
    assert await pods.get("client", OUTSIDE, HTTP) == NOBODY
    await pods.enforce(*OPEN, config(traffic={"enableEgress": True}))
    assert (await pods.get("client", OUTSIDE, HTTP)).by == "outside"
    assert (await pods.get("client", address(pods, MEMBERS[0]), HTTP)).by == MEMBERS[0]


async def test_egress_does_not_carry_what_is_not_allowed(pods: Pods) -> None:
    """A call to a service of the mesh ends in the client's sidecar at once, and goes on to nowhere."""
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


async def test_who_is_not_in_the_mesh_is_not_served(pods: Pods) -> None:
    """A machine without a sidecar on the same network gets no answer from a pod, permissive or not."""
    for policy in (OPEN, (*OPEN, PERMISSIVE)):
        await pods.enforce(*policy)
        assert await pods.get("switch", ADDRESSES[MEMBERS[0]], HTTP) == NOBODY
        assert await pods.hello("switch", ADDRESSES[MEMBERS[0]], GREETER) == CLOSED
    assert (await pods.get("client", ADDRESSES[MEMBERS[0]], HTTP)).by == MEMBERS[0]
