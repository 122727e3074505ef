"""Tests of the check that the state directory can be written."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from certs.ledger.contract import Ledger
from certs.ledger.entry import LedgerEntry
from certs.ledger.sqlite import SqliteLedger
from meshwright.controller.process.disk_space import StateRoom, StorePlace, WriteFailure, probed
from meshwright.mesh.identity import ProxyName
from tests.tools.shared_records import away
from tests.unit.certs.ledger.records.servers import servers_of_one_store

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return an empty ledger."""
    with SqliteLedger.open(tmp_path / "state" / "ledger.sqlite") as opened:
        yield opened


def test_disk_problem_is_logged_when_it_begins_changes_and_ends(tmp_path: Path, ledger: Ledger) -> None:
    """Repeated checks with the same result add no line; the last line has the duration."""
    moments = iter((10.0, 17.25))
    room = StateRoom(tmp_path / "state", tmp_path / "state" / "ledger.sqlite", ledger, lambda: next(moments))
    with structlog.testing.capture_logs() as lines:
        for reason in ("", "full", "full", "read-only", "read-only", "", ""):
            result = WriteFailure(reason) if reason else None
            room.take(result)
            assert (room.trouble, bool(room.remarks())) == (result, bool(reason))
    assert [(line["log_level"], line.get("reason"), line.get("seconds")) for line in lines] == [
        ("error", "full", None),
        ("error", "read-only", None),
        ("info", None, 7.2),
    ]


def test_replaced_state_directory_or_ledger_is_detected(tmp_path: Path, ledger: Ledger) -> None:
    """A moved or replaced ledger or directory is a problem, even if the new one can be written."""
    state = tmp_path / "state"
    room = StateRoom(state, state / "ledger.sqlite", ledger)
    assert room.look() is None
    (state / "ledger.sqlite").rename(state / "old")
    gone = "was removed or replaced after the start: restore it and restart the server"
    assert room.look() == WriteFailure(f"{state}/ledger.sqlite {gone}")
    (state / "ledger.sqlite").write_bytes((state / "old").read_bytes())
    assert room.look() == WriteFailure(f"{state}/ledger.sqlite {gone}")
    (state / "old").rename(state / "ledger.sqlite")
    assert room.look() is None
    state.rename(tmp_path / "elsewhere")
    assert room.look() == WriteFailure(f"{state} {gone}")


def test_store_that_cannot_be_written_is_named_with_its_error_and_a_remedy(tmp_path: Path) -> None:
    """The message does not name the state directory, which can be written."""
    place = StorePlace("etcd at https://10.0.0.1:2379", "look at its members")
    name = ProxyName.parse("u1.cart.shop")
    with servers_of_one_store() as servers, structlog.testing.capture_logs() as lines:
        server = servers.start()
        ledger = server.ledger
        ledger.record(LedgerEntry.issued("aa", name, NOW, NOW + timedelta(days=1)))
        room = StateRoom(tmp_path, tmp_path / "ledger.sqlite", ledger, lambda: 1.0, place)
        ledger.claim("aa", NOW)
        with away(server.store):
            room.take(room.look())
            (remark,) = room.remarks()
        room.take(room.look())
    reason = (
        "the shared ledger cannot be used: changes of proxy certificates are not written: "
        "the store of the test is away"
    )
    assert remark == (
        f"the shared store, etcd at https://10.0.0.1:2379, cannot be written: {reason}; look at its members; "
        "valid configuration and certificates are still served, changes of 1 proxies wait to be written"
    )
    failed, restored = lines
    assert failed == {
        "event": "shared store cannot be written; valid configuration and certificates are still served",
        "log_level": "error",
        "store": "etcd at https://10.0.0.1:2379",
        "reason": reason,
        "do": "look at its members",
    }
    assert restored["event"] == "shared store can be written again"
    assert room.remarks() == ()


def test_check_of_the_disk_leaves_no_file(tmp_path: Path) -> None:
    """A successful check leaves no file; a missing directory is reported with the cause."""
    assert probed(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
    missing = tmp_path / "missing"
    assert probed(missing) == f"the state directory {missing} cannot be written: No such file or directory"


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_link_in_place_of_the_probe_file_is_not_followed(tmp_path: Path, link: str) -> None:
    """Root may run `meshwright check` on a directory in which another user can create a link."""
    victim, state = tmp_path / "victim", tmp_path / "state"
    victim.write_text("whole")
    state.mkdir()
    getattr(state / ".room", link)(victim)
    assert probed(state) == ""
    assert victim.read_text() == "whole"
    assert [*state.iterdir()] == []
