"""Health checks of UpstreamPolicies at real Envoys: endpoints leave and come back before a request fails."""

from collections.abc import Iterator

import grpc
import grpc.aio
import pytest

from tests.e2e.policy.applications import GRPC, HTTP, UNWELL
from tests.e2e.policy.policies import (
    ALL,
    EVERYTHING,
    PERMISSIVE,
    Document,
    http,
    path,
    routes,
    target,
    upstream_policy,
)
from tests.e2e.policy.running import PolicyMesh
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

OPEN = (
    *EVERYTHING,
    target("one", "shop/v1", ("shop/client", "office/clerk"), *ALL),
    target("two", "shop/v2", ("shop/client", "office/clerk"), *ALL),
)
CLUSTER = f"cluster.shop/both.{HTTP}"


@pytest.fixture(autouse=True)
def all_well() -> Iterator[None]:
    """Every application is well again afterwards."""
    yield
    UNWELL.clear()


def checked(**how: Document) -> Document:
    """Have the endpoints of `both` asked as often as may be."""
    return upstream_policy("both", healthCheck={**how, "interval": "1s", "unhealthyThreshold": 2})


BY_REQUESTS = checked(http={"path": "/well?deep=yes"})


async def healthy(mesh: PolicyMesh, count: int) -> None:
    """Wait until the client's sidecar holds so many endpoints healthy."""

    async def is_so() -> bool:
        return await mesh.live.stat("client", f"{CLUSTER}.membership_healthy") == count

    await until(is_so, 30)


async def answered_by(mesh: PolicyMesh, names: set[str], path: str = "/") -> None:
    """Wait until these answer the client: Envoy's workers hear of health a second after its statistics."""

    async def is_so() -> bool:
        result = set(await mesh.answering("client", "both", 20, path))
        assert result <= {"v1", "v2"}
        return result == names

    await until(is_so, 30)


@pytest.mark.parametrize("base", [OPEN, (PERMISSIVE,)], ids=["strict", "permissive"])
async def test_who_is_unwell_is_left_alone_and_comes_back(
    mesh: PolicyMesh, base: tuple[Document, ...]
) -> None:
    """It would have answered; without the policy it does."""
    await mesh.enforce(*base)
    UNWELL.add("v1")
    assert set(await mesh.answering("client", "both", 20)) == {"v1", "v2"}
    await mesh.enforce(*base, BY_REQUESTS)
    await healthy(mesh, 1)
    await answered_by(mesh, {"v2"})
    assert await mesh.answering("client", "both", 20) == {"v2": 20}
    UNWELL.clear()
    await healthy(mesh, 2)
    await answered_by(mesh, {"v1", "v2"})


async def test_where_all_are_unwell_all_are_called(mesh: PolicyMesh) -> None:
    """A check that is wrong does no more harm than none."""
    await mesh.enforce(*OPEN)
    await mesh.answering("client", "both", 2)
    await mesh.enforce(*OPEN, BY_REQUESTS)
    UNWELL.update({"v1", "v2"})
    await healthy(mesh, 0)
    await answered_by(mesh, {"v1", "v2"})
    assert await mesh.live.stat("client", f"{CLUSTER}.lb_healthy_panic") > 0


async def test_a_check_that_policy_denies_harms_nobody(mesh: PolicyMesh) -> None:
    """It is a request of the caller's as others are; what is admitted goes on, to both."""
    some = routes("some", path("/x.*", "GET"))
    strict = [target(f"to-{each}", f"shop/{each}", ("shop/client",), http("some")) for each in ("v1", "v2")]
    await mesh.enforce(some, *strict)
    await mesh.answering("client", "both", 2, "/x")
    await mesh.enforce(some, *strict, BY_REQUESTS)
    await healthy(mesh, 0)
    await answered_by(mesh, {"v1", "v2"}, "/x")
    assert await mesh.answering("client", "both", 2, "/y") == {"403": 2}
    well = routes("well", path("/well", "GET"))
    admitted = [target(f"w-{each}", f"shop/{each}", ("shop/client",), http("well")) for each in ("v1", "v2")]
    await mesh.enforce(some, well, *strict, *admitted, BY_REQUESTS)
    await healthy(mesh, 2)


async def test_a_connection_asks_the_sidecar_alone(mesh: PolicyMesh) -> None:
    """Whoever says of itself that it is unwell is called; a port of gRPC is asked by no GET."""
    await mesh.enforce(*OPEN)
    await mesh.answering("client", "both", 2)
    before = await mesh.live.stat("client", f"{CLUSTER}.health_check.success")
    UNWELL.add("v1")
    await mesh.enforce(*OPEN, checked(tcp={}))

    async def asked_again() -> bool:
        return await mesh.live.stat("client", f"{CLUSTER}.health_check.success") >= before + 4

    await until(asked_again, 30)
    await healthy(mesh, 2)
    await answered_by(mesh, {"v1", "v2"})


async def test_grpc_asks_ports_of_grpc(mesh: PolicyMesh) -> None:
    """By its own protocol of health; ports of HTTP are not asked so."""
    await mesh.enforce(*OPEN)
    address, port = mesh.place("client", "both", GRPC)
    async with grpc.aio.insecure_channel(f"{address}:{port}") as channel:
        say = channel.unary_unary("/test.Echo/Say")

        async def answering() -> set[bytes]:
            return {(await say(b"hello")).partition(b":")[0] for _ in range(12)}

        assert await answering() == {b"v1", b"v2"}
        UNWELL.add("v1")
        await mesh.enforce(*OPEN, checked(grpc={"service": "test.Echo"}))

        async def left_alone() -> bool:
            return await answering() == {b"v2"}

        await until(left_alone, 30)
        assert set(await mesh.answering("client", "both", 20)) == {"v1", "v2"}
        UNWELL.clear()

        async def back() -> bool:
            return await answering() == {b"v1", b"v2"}

        await until(back, 30)


async def test_what_is_expected_is_well(mesh: PolicyMesh) -> None:
    """An answer of 503 where that is said, and then nothing else."""
    await mesh.enforce(*OPEN)
    await mesh.answering("client", "both", 2)
    UNWELL.add("v1")
    await mesh.enforce(*OPEN, checked(http={"path": "/well", "expectedStatuses": ["503"]}))
    await healthy(mesh, 1)
    await answered_by(mesh, {"v1"})
