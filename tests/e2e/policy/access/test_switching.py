"""Permissive mode on and off under load: what is allowed in both never fails."""

import pytest

from tests.e2e.policy.applications import ECHO
from tests.e2e.policy.calls import CLOSED, load
from tests.e2e.policy.policies import PERMISSIVE, Document, http, path, ports, routes, target, tcp
from tests.e2e.policy.running import PolicyMesh

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

POLICY = (
    routes("books", path("/books")),
    ports("echo", ECHO),
    target("http", "shop/v1", ("shop/client",), http("books")),
    target("tcp", "shop/v1", ("shop/client",), tcp("echo")),
)


async def test_permissive_and_back_under_load(mesh: PolicyMesh) -> None:
    """All allowed calls succeed; the request that SMI denies is 403 exactly while it does."""

    async def allowed() -> str:
        answer = await mesh.get("client", "v1", "/books")
        line = await mesh.hello("client", "v1", ECHO)
        return f"{answer.status} {line!r}"

    async def denied() -> str:
        return str((await mesh.get("client", "v1", "/secrets")).status)

    async def stranger() -> str:
        return str((await mesh.get("clerk", "v1", "/books")).status)

    await mesh.enforce(*POLICY)
    async with load(allowed) as always, load(denied, 1) as sometimes, load(stranger, 1) as unknown:
        for permissive in (True, False, True, False):
            await mesh.enforce(*POLICY, *((PERMISSIVE,) if permissive else ()))
            assert set(await sometimes.more(20)) == {"200" if permissive else "403"}
            assert set(await unknown.more(20)) == {"200" if permissive else "0"}
            await always.more(20)
    assert set(always.every) == {"200 'v1: hello\\n'"}, always.every


def namespace(name: str, permissive: bool) -> Document:
    """Make a Namespace that says whether its workloads accept everybody in the mesh."""
    annotations = {"meshwright.dev/permissive": str(permissive).lower()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


async def test_permissive_for_a_namespace(mesh: PolicyMesh) -> None:
    """Its workloads accept the whole mesh, others do not; in a permissive mesh it may be the exception."""

    async def statuses() -> list[int]:
        calls = (("client", "/books"), ("client", "/secrets"), ("clerk", "/books"))
        return [(await mesh.get(caller, "v1", path)).status for caller, path in calls]

    await mesh.enforce(*POLICY)
    assert await statuses() == [200, 403, 0]
    await mesh.enforce(*POLICY, namespace("shop", permissive=True))
    assert await statuses() == [200, 200, 200]
    assert await mesh.hello("clerk", "v2", ECHO) == "v2: hello\n"
    await mesh.enforce(*POLICY, namespace("office", permissive=True))
    assert await statuses() == [200, 403, 0]
    await mesh.enforce(*POLICY, PERMISSIVE, namespace("shop", permissive=False))
    assert await statuses() == [200, 403, 0]
    assert await mesh.hello("clerk", "v2", ECHO) == CLOSED
