"""Tests of a server that alone cannot reach the shared store: readiness, ended streams and log."""

from collections.abc import Sequence

from structlog.testing import capture_logs

from meshwright.controller.sharing.isolated_server import LOOK_SECONDS, IsolatedServer
from meshwright.replicas.isolation import AWAY_SECONDS, PATIENCE_SECONDS
from tests.unit.controller.sharing.test_stream_balance import Driver

NEW = 1.0


class Scene:
    """A server with drivers, and the ages that the others answer."""

    def __init__(self, *drivers: Driver) -> None:
        self.now = 50.0
        self.age, self.is_here = 0.0, False
        self.others: Sequence[float | None] = (NEW,)
        self.questions = 0
        self.moved = list[int]()
        self.server = IsolatedServer(
            lambda: self.age, self.ask, lambda: drivers, self.moved.append, lambda: self.now
        )

    async def ask(self) -> Sequence[float | None]:
        """Answer a question."""
        self.questions += 1
        return self.others

    async def pass_seconds(self, seconds: float) -> None:
        """Look every five seconds."""
        end = self.now + seconds
        while self.now < end:
            self.now += LOOK_SECONDS
            self.age = NEW if self.is_here else self.age + LOOK_SECONDS
            await self.server.look()


async def test_server_is_not_ready_and_ends_its_streams_slowly() -> None:
    """A fiftieth of the streams of each driver ends in a second, and only those from before."""
    one, two = Driver(120), Driver(3)
    scene = Scene(one, two)
    await scene.pass_seconds(PATIENCE_SECONDS - LOOK_SECONDS)
    scene.server.end_streams()
    assert (scene.server.waited_for(), scene.moved) == ((), [])
    with capture_logs() as log:
        await scene.pass_seconds(LOOK_SECONDS)
    scene.now += 7.0
    scene.server.end_streams()
    assert (one.streams, two.streams, scene.moved) == (117, 2, [3, 1])
    assert one.youngest == two.youngest == [7.0]
    (reason,) = scene.server.waited_for()
    assert "answers other servers" in reason
    assert [(line["log_level"], line["seconds"]) for line in log] == [("error", 300)]


async def test_server_is_ready_again_when_the_store_answers() -> None:
    """No stream ends any more, and a change is logged once."""
    driver = Driver(100)
    scene = Scene(driver)
    await scene.pass_seconds(PATIENCE_SECONDS)
    assert scene.server.waited_for()
    scene.is_here = True
    with capture_logs() as log:
        await scene.pass_seconds(3 * LOOK_SECONDS)
    scene.server.end_streams()
    assert (scene.server.waited_for(), driver.streams) == ((), 100)
    assert [line["log_level"] for line in log] == ["info"]


async def test_others_are_asked_only_while_the_store_is_away() -> None:
    """A server whose store answers costs the others nothing."""
    scene = Scene()
    scene.is_here = True
    await scene.pass_seconds(60)
    assert scene.questions == 0
    scene.is_here = False
    await scene.pass_seconds(AWAY_SECONDS)
    assert scene.questions == 1
