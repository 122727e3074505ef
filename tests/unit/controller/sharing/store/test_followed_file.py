"""Tests of the file with the records that a server has followed."""

import stat
from pathlib import Path

import pytest

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
