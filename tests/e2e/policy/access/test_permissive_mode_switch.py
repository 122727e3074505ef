"""Tests of permissive mode, switched on and off under load."""

import pytest

from tests.e2e.policy.applications import ECHO
from tests.e2e.policy.calls import CLOSED, load
from tests.e2e.policy.policies import PERMISSIVE, Document, http, path, ports, routes, target, tcp
from tests.e2e.policy.running_mesh import PolicyMesh

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


async def test_permissive_mode_on_and_off_under_load_fails_no_permitted_call(mesh: PolicyMesh) -> None:
    """Calls that both modes permit always succeed.

    Calls that only permissive mode permits are refused exactly while it is off.
    """

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
    """Return a Namespace with permissive mode on or off."""
    annotations = {"meshwright.dev/permissive": str(permissive).lower()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


async def test_permissive_mode_of_a_namespace_overrides_that_of_the_mesh(mesh: PolicyMesh) -> None:
    """Workloads of a permissive namespace accept the whole mesh, and others do not.

    In a permissive mesh, a namespace may be the exception.
    """

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
