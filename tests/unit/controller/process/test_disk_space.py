"""Whether a state directory can be written, as it is said."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from certs.ledger.contract import Ledger
from certs.ledger.sqlite import SqliteLedger
from meshwright.controller.process.disk_space import StateRoom, probed


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return an empty ledger."""
    with SqliteLedger.open(tmp_path / "state" / "ledger.sqlite") as opened:
        yield opened


def test_a_trouble_is_said_when_it_begins_changes_and_ends(tmp_path: Path, ledger: Ledger) -> None:
    """Each of its looks finds the same, and the log has three lines."""
    moments = iter((10.0, 17.25))
    room = StateRoom(tmp_path / "state", tmp_path / "state" / "ledger.sqlite", ledger, lambda: next(moments))
    with structlog.testing.capture_logs() as lines:
        for found in ("", "full", "full", "read-only", "read-only", "", ""):
            room.take(found)
            assert (room.trouble, bool(room.remarks())) == (found, bool(found))
    assert [(line["log_level"], line.get("reason"), line.get("seconds")) for line in lines] == [
        ("error", "full", None),
        ("error", "read-only", None),
        ("info", None, 7.2),
    ]


def test_a_directory_or_ledger_that_is_another_is_found(tmp_path: Path, ledger: Ledger) -> None:
    """Though it can be written to."""
    state = tmp_path / "state"
    room = StateRoom(state, state / "ledger.sqlite", ledger)
    assert room.look() == ""
    (state / "ledger.sqlite").rename(state / "old")
    gone = "was removed or replaced after the start: restore it and restart the server"
    assert room.look() == f"{state}/ledger.sqlite {gone}"
    (state / "ledger.sqlite").write_bytes((state / "old").read_bytes())
    assert room.look() == f"{state}/ledger.sqlite {gone}"
    (state / "old").rename(state / "ledger.sqlite")
    assert room.look() == ""
    state.rename(tmp_path / "elsewhere")
    assert room.look() == f"{state} {gone}"


def test_a_look_leaves_nothing(tmp_path: Path) -> None:
    """Nor does one that fails."""
    assert probed(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
    missing = tmp_path / "missing"
    assert probed(missing) == f"the state directory {missing} cannot be written: No such file or directory"


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_what_stands_there_by_the_name_of_the_probe_is_not_written_to(tmp_path: Path, link: str) -> None:
    """`meshwright check` is root's to type, of a directory in which another user can put a link."""
    victim, state = tmp_path / "victim", tmp_path / "state"
    victim.write_text("whole")
    state.mkdir()
    getattr(state / ".room", link)(victim)
    assert probed(state) == ""
    assert victim.read_text() == "whole"
    assert [*state.iterdir()] == []
