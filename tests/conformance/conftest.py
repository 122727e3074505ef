"""Fixtures with a front Envoy of each version and variant, our server, and upstreams."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.control_plane import ControlPlane, Keys
from tests.conformance.envoys import Envoy, programs
from tests.conformance.resources import listener, route, upstream
from tests.conformance.traffic import serve
from tools.ports import free_port
from xds.protocol.resources.resource import Resource
from xds.stream_status import Variant


@dataclass
class Bench:
    """A control plane for a front, two upstreams, and the front's Envoy."""

    plane: ControlPlane
    program: str
    variant: Variant
    folder: Path
    ends: AsyncExitStack
    port: int
    one: int
    two: int

    async def envoy(self) -> Envoy:
        """Start the Envoy."""
        return await Envoy.start(self.program, self.plane, self.variant, self.folder, self.ends)

    async def running(self) -> Envoy:
        """Serve the front; return the Envoy when it has accepted it and is live."""
        self.plane.publish(*self.front("one", self.one))
        envoy = await self.envoy()
        await self.plane.settled()
        return envoy

    def front(self, name: str, port: int, *more: Resource) -> tuple[Resource, ...]:
        """Return the listener with routes to one upstream."""
        return (*upstream(name, port), listener(self.port), route(name), *more)


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """End the programs that a test started."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """Issue the keys once for all tests."""
    return Keys.make(tmp_path_factory.mktemp("keys"))


@pytest.fixture(params=list(Variant), ids=str)
def variant(request: pytest.FixtureRequest) -> Variant:
    """Return each variant in turn."""
    return Variant(request.param)


@pytest.fixture(params=programs())
def program(request: pytest.FixtureRequest) -> str:
    """Return each Envoy to test in turn."""
    result = programs()[request.param]
    if result is None:
        pytest.skip(f"there is no Envoy {request.param}: `make envoy` or `make conformance` makes one")
    return result


@pytest.fixture
def second_port() -> int:
    """Return a port for another listener."""
    return free_port("127.0.0.1")


@pytest.fixture
async def bench(keys: Keys, ends: AsyncExitStack, program: str, variant: Variant, tmp_path: Path) -> Bench:
    """Start the control plane and the upstreams."""
    plane = await ControlPlane.begin(keys, ends)
    one, two = await serve("one", ends), await serve("two", ends)
    return Bench(plane, program, variant, tmp_path, ends, free_port("127.0.0.1"), one, two)
