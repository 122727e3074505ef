"""Two meshes that are kept for the whole run: one in explicit interception, one in network namespaces."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.e2e.policy.pods import Pods
from tests.e2e.policy.policies import EVERYTHING
from tests.e2e.policy.running_mesh import PolicyMesh


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PolicyMesh]:
    """Five workloads in explicit interception; no Envoy may have logged a complaint at the end."""
    async with AsyncExitStack() as ends:
        running = await PolicyMesh.start(tmp_path_factory.mktemp("explicit"), ends)
        yield running
        assert await running.live.complaints() == ""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def no_connections(mesh: PolicyMesh) -> AsyncIterator[None]:
    """Close all connections before and after a file whose external services decide about requests.

    A connection keeps the external service of its listener, or the lack of one, so a connection of another
    file would give wrong results.
    """
    await mesh.disconnected()
    yield
    await mesh.disconnected()
    await mesh.enforce(*EVERYTHING)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def pods(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pods]:
    """A client and a StatefulSet in separate network namespaces, with redirected traffic."""
    async with AsyncExitStack() as ends:
        running = await Pods.start(tmp_path_factory.mktemp("transparent"), ends)
        yield running
        assert await running.live.complaints() == ""
