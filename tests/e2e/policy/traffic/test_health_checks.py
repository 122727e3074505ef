"""Tests of UpstreamPolicies' health checks with real Envoys: unhealthy endpoints are avoided."""

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
from tests.e2e.policy.running_mesh import PolicyMesh
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
def healthy_applications() -> Iterator[None]:
    """Make every application healthy after the test."""
    yield
    UNWELL.clear()


def checked(**how: Document) -> Document:
    """Return a policy with the most frequent health checks for the endpoints of `both`."""
    return upstream_policy("both", healthCheck={**how, "interval": "1s", "unhealthyThreshold": 2})


BY_REQUESTS = checked(http={"path": "/well?deep=yes"})


async def healthy(mesh: PolicyMesh, count: int) -> None:
    """Wait until the client's sidecar has this number of healthy endpoints."""

    async def is_so() -> bool:
        return await mesh.live.stat("client", f"{CLUSTER}.membership_healthy") == count

    await until(is_so, 30)


async def answered_by(mesh: PolicyMesh, names: set[str], path: str = "/") -> None:
    """Wait until exactly these answer. Envoy's workers get health changes a second after its statistics."""

    async def is_so() -> bool:
        result = set(await mesh.answering("client", "both", 20, path))
        assert result <= {"v1", "v2"}
        return result == names

    await until(is_so, 30)


@pytest.mark.parametrize("base", [OPEN, (PERMISSIVE,)], ids=["strict", "permissive"])
async def test_unhealthy_endpoint_gets_no_requests_until_it_recovers(
    mesh: PolicyMesh, base: tuple[Document, ...]
) -> None:
    """Without the policy, the endpoint would be called although it is unhealthy."""
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


async def test_all_endpoints_are_called_if_all_are_unhealthy(mesh: PolicyMesh) -> None:
    """A wrong health check must do no more harm than no check, so Envoy's panic mode applies."""
    await mesh.enforce(*OPEN)
    await mesh.answering("client", "both", 2)
    await mesh.enforce(*OPEN, BY_REQUESTS)
    UNWELL.update({"v1", "v2"})
    await healthy(mesh, 0)
    await answered_by(mesh, {"v1", "v2"})
    assert await mesh.live.stat("client", f"{CLUSTER}.lb_healthy_panic") > 0


async def test_health_check_that_policy_denies_does_not_stop_calls(mesh: PolicyMesh) -> None:
    """A health check is a request of the caller, so policy applies to it.

    Admitted requests still reach both endpoints.
    """
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


async def test_tcp_health_check_tests_only_the_sidecar(mesh: PolicyMesh) -> None:
    """An application that reports itself unhealthy is still called, because the check only connects."""
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


async def test_grpc_health_check_applies_to_grpc_ports_only(mesh: PolicyMesh) -> None:
    """The gRPC health protocol decides for gRPC ports; HTTP ports are not checked by it."""
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


async def test_health_check_accepts_only_its_expected_statuses(mesh: PolicyMesh) -> None:
    """If 503 is the expected status, an endpoint that answers otherwise is unhealthy."""
    await mesh.enforce(*OPEN)
    await mesh.answering("client", "both", 2)
    UNWELL.add("v1")
    await mesh.enforce(*OPEN, checked(http={"path": "/well", "expectedStatuses": ["503"]}))
    await healthy(mesh, 1)
    await answered_by(mesh, {"v1"})
