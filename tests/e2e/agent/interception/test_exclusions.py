"""Tests of excluded ranges and ports, mesh-wide and of a pod, with the options that injection sets."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from functools import partial

import pytest
import pytest_asyncio

from demo.plane import COMMAND
from meshwright.mesh.config import Exclusions, MeshConfig
from meshwright.mesh.names import Namespace, Port, ProxyUuid
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.workload import Transparent
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.injection.containers.init_container import arguments
from meshwright.sidecars.injection.context import (
    EXCLUDED_RANGES,
    OUTBOUND_PORTS,
    Injector,
    injector_context,
)
from meshwright.sidecars.injection.names import INBOUND_PORTS
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.mesh_of_machines import ADDRESSES, SWITCH, V4, V6, Meshed, bound
from tests.e2e.policy import applications
from tests.e2e.policy.applications import ADMIN, HTTP
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
INJECTOR = Injector("mesh", Namespace("system"), {"envoy": 15128})
OUTSIDE = f"{SWITCH[V4]}/32"
PLAIN, REFUSED = (200, f"{HTTP} /books"), (0, "")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def meshed(tmp_path_factory: pytest.TempPathFactory, envoy: str) -> AsyncIterator[Meshed]:
    """Two machines in the mesh, and one outside it with the same application."""
    async with AsyncExitStack() as ends:
        state, how = tmp_path_factory.mktemp("excluded"), Transparent(ipv6=True)
        made = await Meshed.start(state, V4, how, envoy, ends)
        await applications.start("outside", partial(bound, made.machines["switch"], V4), ends)
        yield made


async def _intercept(
    meshed: Meshed, name: str, mesh_wide: Exclusions, annotations: Mapping[str, str]
) -> None:
    """Set the rules of a machine like those of a pod with these annotations."""
    pod: Pod = {"metadata": {"name": name, "annotations": dict(annotations)}, "spec": {"containers": []}}
    config = MeshConfig(exclusions=mesh_wide)
    known = injector_context(INJECTOR, config, NamespaceObject(Namespace("default")), pod, ProxyUuid(name))
    command = (str(COMMAND), "intercept", *arguments(known))
    await asyncio.to_thread(meshed.machines[name].run, *command)


@pytest.mark.parametrize(
    ("mesh_wide", "annotations", "past"),
    [
        (Exclusions(), {}, ()),
        (Exclusions(ranges_excluded=(OUTSIDE,)), {}, (HTTP, ADMIN)),
        (Exclusions(), {EXCLUDED_RANGES: OUTSIDE}, (HTTP, ADMIN)),
        (Exclusions(ranges_excluded=("192.0.2.0/24",)), {EXCLUDED_RANGES: "fd00:1::/32"}, ()),
        (Exclusions(outbound_ports=(Port(HTTP),)), {}, (HTTP,)),
        (Exclusions(), {OUTBOUND_PORTS: str(ADMIN)}, (ADMIN,)),
        (Exclusions(outbound_ports=(Port(HTTP),)), {OUTBOUND_PORTS: str(ADMIN)}, (HTTP, ADMIN)),
        (
            Exclusions(ranges_included=(f"{ADDRESSES['shop'][V4]}/32", "10.96.0.0/16", "fd00:96::/32")),
            {},
            (HTTP, ADMIN),
        ),
    ],
)
async def test_excluded_outbound_calls_bypass_the_sidecar(
    meshed: Meshed, mesh_wide: Exclusions, annotations: Mapping[str, str], past: tuple[int, ...]
) -> None:
    """Plain-text calls to excluded hosts or ports arrive outside the mesh, and other calls to them fail.

    Calls to the mesh's services go through the sidecar as before.
    """
    await _intercept(meshed, "alice", mesh_wide, annotations)
    for port in (HTTP, ADMIN):
        result = await meshed.get("alice", f"http://{SWITCH[V4]}:{port}/books")
        assert result == ((200, f"{port} /books") if port in past else REFUSED)
    assert [await meshed.books("alice", family) for family in (V4, V6)] == [PLAIN, PLAIN]


@pytest.mark.parametrize(
    ("mesh_wide", "annotations", "past"),
    [
        (Exclusions(), {}, False),
        (Exclusions(inbound_ports=(Port(HTTP),)), {}, True),
        (Exclusions(), {INBOUND_PORTS: f"22, {HTTP}"}, True),
        (Exclusions(inbound_ports=(Port(ADMIN),)), {}, False),
    ],
)
async def test_excluded_inbound_port_accepts_plain_text_from_outside_the_mesh(
    meshed: Meshed, mesh_wide: Exclusions, annotations: Mapping[str, str], past: bool
) -> None:
    """A call from outside the mesh reaches the application's port only if exactly this port is excluded."""
    await _intercept(meshed, "shop", mesh_wide, annotations)
    calls = partial(meshed.get, "switch", f"http://{ADDRESSES['shop'][V4]}:{HTTP}/books")

    async def answered() -> bool:
        return await calls() == (PLAIN if past else REFUSED)

    await until(answered)
