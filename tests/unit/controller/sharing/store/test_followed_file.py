"""Tests of the file with the records that a server has followed."""

import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from certs.state import database
from meshwright.controller.sharing.store import followed_file
from meshwright.controller.sharing.store.followed_file import FOLLOWED_FILE, FollowedFile
from meshwright.records.contract import Record, Revision
from meshwright.records.key import key_of

ONE = Record(key_of("proxies", "shop", "cart", "x"), bytes(range(256)), Revision("5"))
TWO = Record(key_of("seal"), b"", Revision("w-1"))


def test_kept_records_survive_a_restart(tmp_path: Path) -> None:
    """Changed records are replaced, and removed ones forgotten. Only the owner can read the file."""
    file = FollowedFile(tmp_path / "state")
    assert file.load() == ()
    file.keep({ONE.key: ONE, TWO.key: TWO})
    changed = Record(ONE.key, b"changed", Revision("6"))
    file.keep({ONE.key: changed, TWO.key: None})
    file.close()
    again = FollowedFile(tmp_path / "state")
    assert again.load() == (changed,)
    again.close()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").glob(f"{FOLLOWED_FILE}*")}
    assert modes == {0o600}


def test_damaged_file_is_made_anew(tmp_path: Path) -> None:
    """The store has all records, so a damaged file is no reason to refuse the start."""
    (tmp_path / FOLLOWED_FILE).write_bytes(b"damaged" * 100)
    (tmp_path / FOLLOWED_FILE).chmod(0o600)
    file = FollowedFile(tmp_path)
    assert file.load() == ()
    file.keep({ONE.key: ONE})
    assert file.load() == (ONE,)
    file.close()


def test_full_disk_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    """The records that are on the disk stay there."""
    file = FollowedFile(tmp_path)
    file.keep({ONE.key: ONE})
    file._opened().execute("PRAGMA max_page_count = 1")
    with pytest.raises(OSError, match=r"file of followed records .*followed.sqlite cannot be used: .*full"):
        file.keep(
            {key: Record(key, b"x" * 5000, Revision("1")) for key in (key_of(f"k{n}") for n in range(99))}
        )
    assert file.load() == (ONE,)
    file.close()


def test_file_is_closed_after_the_call_of_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite crashes the process if a connection is closed while another thread uses it."""
    file, began, end = FollowedFile(tmp_path), threading.Event(), threading.Event()
    changing = database.changing

    @contextmanager
    def slowly(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        with changing(connection) as changed:
            began.set()
            assert end.wait(60)
            yield changed

    monkeypatch.setattr(followed_file, "changing", slowly)
    keeping = threading.Thread(target=file.keep, args=({ONE.key: ONE},))
    keeping.start()
    assert began.wait(60)
    closing = threading.Thread(target=file.close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    end.set()
    closing.join(60)
    keeping.join(60)
    again = FollowedFile(tmp_path)
    assert again.load() == (ONE,)
    again.close()


def test_closed_file_is_not_opened_again(tmp_path: Path) -> None:
    """The call of a cancelled task may begin after the end of the server."""
    file = FollowedFile(tmp_path)
    file.close()
    with pytest.raises(OSError, match=r"file of followed records .*followed.sqlite is closed"):
        file.keep({ONE.key: ONE})
    assert file.load() == ()
    assert not (tmp_path / FOLLOWED_FILE).exists()


def test_closed_file_stays_as_it_is(tmp_path: Path) -> None:
    """A server that ends while it starts must not lose the records for the next start."""
    file = FollowedFile(tmp_path)
    file.keep({ONE.key: ONE})
    file.close()
    assert file.load() == ()
    again = FollowedFile(tmp_path)
    assert again.load() == (ONE,)
    again.close()
