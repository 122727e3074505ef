"""Tests of join tokens in an SQLite file, beyond the contract of stores."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from certs.errors import StateError
from certs.state.database import JOURNAL_BYTES
from meshwright.enrolment.store.contract import TokenRefused
from meshwright.enrolment.store.sqlite import SqliteTokens
from meshwright.enrolment.tokens import JoinToken
from tests.unit.enrolment.store.tokens import NOW, TOKEN, record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteTokens]:
    """Return a store with TOKEN, of two uses."""
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as opened:
        opened.add(TOKEN, record(uses=2))
        yield opened


def test_token_file_is_private_and_has_no_secret(store: SqliteTokens, tmp_path: Path) -> None:
    """A copy of the file must not allow a join with one of its tokens."""
    store.redeem(TOKEN, "a", NOW)
    paths = list(tmp_path.iterdir())
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o600}
    assert not [path for path in paths if TOKEN.secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("put_back", [False, True])
def test_open_store_follows_the_file_that_replaces_its_own(
    put_back: bool, store: SqliteTokens, tmp_path: Path
) -> None:
    """A server has the store open; tokens that the new file lacks are unknown at once.

    Tokens that other processes add and revoke in the new file are followed.
    """
    path = tmp_path / "tokens.sqlite"
    copy = path.read_bytes()
    path.unlink()
    if put_back:
        path.write_bytes(copy)
    else:
        with pytest.raises(TokenRefused, match="token_unknown"):
            store.redeem(TOKEN, "a", NOW)
    with SqliteTokens.open(path) as beside:
        if not put_back:
            assert beside.tokens() == ()
            beside.add(TOKEN, record(uses=2))
        assert store.redeem(TOKEN, "a", NOW).first
        beside.revoke(TOKEN.id, NOW)
        with pytest.raises(TokenRefused, match="token_revoked"):
            store.redeem(TOKEN, "a", NOW)
        assert store.tokens() == beside.tokens()


def test_store_uses_its_file_again_after_a_failed_reopening(store: SqliteTokens, tmp_path: Path) -> None:
    """Here a directory at the file's path prevents the reopening, as a full disk could."""
    path = tmp_path / "tokens.sqlite"
    path.rename(tmp_path / "aside")
    path.mkdir()
    for _ in range(2):
        with pytest.raises(StateError, match="Is a directory"):
            store.tokens()
    path.rmdir()
    (tmp_path / "aside").rename(path)
    assert store.redeem(TOKEN, "key", NOW).first


def test_every_token_can_be_revoked_on_a_full_disk(tmp_path: Path) -> None:
    """A revocation makes a row longer, so the store keeps spare pages; new tokens are refused."""
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as store:
        identifiers = [f"{number:012x}" for number in range(60)]
        for identifier in identifiers:
            store.add(JoinToken(identifier, "s" * 43), replace(record(), id=identifier))
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StateError, match="database or disk is full"):
            for number in range(60, 200):
                added = replace(record(), id=f"{number:012x}")
                store.add(JoinToken(added.id, "s" * 43), added)
        later = NOW + timedelta(days=20_000)
        assert [store.revoke(identifier, later).revoked_at for identifier in identifiers] == [later] * 60


def test_store_without_spare_pages_opens_and_gets_its_reserves(tmp_path: Path) -> None:
    """An older store keeps its tokens, and its journal file gets the reserved size."""
    path = tmp_path / "tokens.sqlite"
    with SqliteTokens.open(path) as opened:
        opened.add(TOKEN, record())
        before = opened.tokens()
    raw = sqlite3.connect(path)
    raw.executescript("DROP TABLE spare; PRAGMA journal_mode = DELETE; VACUUM")
    raw.close()
    with SqliteTokens.open(path) as opened:
        assert opened.tokens() == before
    assert (tmp_path / "tokens.sqlite-journal").stat().st_size >= JOURNAL_BYTES


def test_file_that_is_no_token_store_is_refused_with_the_cause(tmp_path: Path) -> None:
    """The cause is one of three: no database, another database, or a newer schema."""
    path = tmp_path / "tokens.sqlite"
    path.write_bytes(b"no database, but long enough to look like something" * 10)
    with pytest.raises(StateError, match="cannot be used: file is not a database"):
        SqliteTokens.open(path)
    path.unlink()
    other = sqlite3.connect(path)
    other.executescript("CREATE TABLE others (x)")
    with pytest.raises(StateError, match="is not a token store but another database"):
        SqliteTokens.open(path)
    other.executescript("PRAGMA user_version = 2")
    other.close()
    with pytest.raises(StateError, match="was written by a newer version of Meshwright \\(it has schema"):
        SqliteTokens.open(path)
