"""Tests of the level of a mesh: raised by the leader alone, and the end of servers that do not read it."""

import asyncio
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from certs.errors import StateError
from meshwright.controller.sharing.record_forms import LEVEL, RecordForms
from meshwright.records.content import NEWEST, Content
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.replicas.forms import SEEN_SECONDS
from meshwright.replicas.leadership import Leadership
from meshwright.replicas.membership import Membership
from meshwright.replicas.state import ReplicaState
from tests.tools.shared_records import FaultyRecords, LoopThread, away

ONE, OTHER = ReplicaId("one"), ReplicaId("other")


class Scene:
    """A server with a clock, whose form is that of a newer version."""

    def __init__(self, loop: asyncio.AbstractEventLoop, form: int = NEWEST + 1) -> None:
        self.memory, self.now = Memory(), 0.0
        self.client = FaultyRecords(MemoryRecords(self.memory, ONE))
        self.membership = Membership(ONE, ReplicaState(form=form))
        self.forms = RecordForms(self.client, ONE, loop, self.membership, Leadership(), lambda: self.now)
        for _, work in self.forms.works():
            work.close()
        self.hear()

    def hear(self, **others: int) -> None:
        """Hear the forms of the other servers."""
        self.membership.hear(
            {ReplicaId(name): ReplicaState(form=form).encode() for name, form in others.items()}
        )

    @property
    def level(self) -> object:
        """Return the level in the store, None without a record."""
        record = self.memory.records.get(LEVEL)
        return None if record is None else Content.decode(record.content).fields["level"]

    def put(self, content: bytes) -> None:
        """Write the record by hand."""
        self.memory.put(LEVEL, content)


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Return a server that is alone."""
    with LoopThread() as thread:
        yield Scene(thread.loop)


def test_leader_raises_the_level_once_all_servers_read_it(scene: Scene) -> None:
    """An older server that was here holds it up for ten minutes; the record keeps fields of others."""
    scene.put(Content({"level": 1, "colour": "red"}, OTHER).encode())
    scene.forms.require()
    scene.now = SEEN_SECONDS
    scene.hear(other=1)
    scene.forms.look()
    assert scene.level == 1
    scene.now += SEEN_SECONDS / 2
    scene.hear()
    scene.forms.look()
    assert scene.level == 1
    scene.now += SEEN_SECONDS / 2
    scene.hear()
    with capture_logs() as log:
        scene.forms.look()
        scene.forms.look()
    assert [line["form"] for line in log] == [NEWEST + 1]
    assert Content.decode(scene.memory.records[LEVEL].content).fields == {"level": 2, "colour": "red"}


def test_server_below_the_level_does_not_start(scene: Scene) -> None:
    """The sentence has both forms, and what to do."""
    scene.forms.require()
    scene.put(Content({"level": NEWEST + 1}, OTHER).encode())
    with pytest.raises(StateError) as refused:
        scene.forms.require()
    assert str(refused.value) == (
        "the servers of this mesh write records of form 2, and form 1 is the newest that this server reads: "
        "upgrade this server"
    )


@pytest.mark.parametrize(
    "content",
    [
        Content({"level": 1}, OTHER, form=NEWEST + 1).encode(),
        Content({"level": "high"}, OTHER).encode(),
        b"{",
    ],
)
def test_unreadable_level_is_refused(scene: Scene, content: bytes) -> None:
    """A record of a newer form is one that this server must not misread."""
    scene.put(content)
    with pytest.raises(StateError, match="record mesh cannot be read"):
        scene.forms.require()


async def test_running_server_ends_when_the_level_is_above_it() -> None:
    """It was away for so long that the others have gone on without it."""
    with LoopThread() as thread:
        scene = Scene(thread.loop)
        thread.start(scene.forms.follow())
        scene.put(Content({"level": NEWEST + 1}, OTHER).encode())
        works = dict(scene.forms.works())
        works.pop("newer forms of records").close()
        with pytest.raises(StateError, match="upgrade this server"):
            await works["level of the mesh"]


def test_store_that_is_away_delays_the_level(scene: Scene) -> None:
    """The next look tries again."""
    scene.now = SEEN_SECONDS
    scene.hear()
    with away(scene.client):
        scene.forms.require()
        with pytest.raises(StateError, match="level of the mesh cannot be raised"):
            scene.forms.look()
    scene.forms.look()
    assert scene.level == NEWEST + 1
