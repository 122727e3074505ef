"""Fixture with a real Envoy that gets any resources, for the tests of a module."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.golden.resource_receiver import start_receiver
from tests.golden.running_mesh import LiveMesh


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def envoy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveMesh]:
    """Start the Envoy."""
    async with AsyncExitStack() as ends:
        yield await start_receiver(tmp_path_factory.mktemp("acceptance"), ends, drain_seconds=1)
