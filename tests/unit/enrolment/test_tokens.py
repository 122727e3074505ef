"""Join tokens: how they are written, what is kept of them, and that nothing that prints shows a secret."""

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.errors import RequestError, StateError
from certs.state.database import JOURNAL_BYTES
from meshwright.enrolment.store.contract import TokenRefused
from meshwright.enrolment.store.sqlite import SqliteTokens
from meshwright.enrolment.tokens import (
    JoinToken,
    TokenRecord,
    TokenRefusal,
    TokenRequest,
    read_token,
    recorded,
)

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DAY = timedelta(days=1)
TOKEN = JoinToken("0123456789ab", "Secret-" + "s" * 36, ("ab" * 32,))


def record(uses: int = 1, **changes: object) -> TokenRecord:
    """Return what is kept of TOKEN."""
    return recorded(TokenRequest("shop", "market", uses=uses, **changes), TOKEN.id, "somebody", NOW)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteTokens]:
    """Return a store with TOKEN, of two uses."""
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as opened:
        opened.add(TOKEN, record(uses=2))
        yield opened


def test_a_token_is_read_as_it_is_written() -> None:
    """With pins or without, and whatever ends its line."""
    for token in (
        TOKEN,
        JoinToken(TOKEN.id, TOKEN.secret),
        JoinToken(TOKEN.id, TOKEN.secret, ("0" * 64,) * 2),
        JoinToken(TOKEN.id, TOKEN.secret, ("0" * 64,) * 100),
    ):
        assert read_token(f"{token.text()}\n") == token
    assert TOKEN.secret not in repr(TOKEN) + str(TOKEN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0123456789ab",
        f"0123456789ab.{'s' * 42}",
        f"0123456789AB.{'s' * 43}",
        f"{TOKEN.id}.{TOKEN.secret}.",
        f"{TOKEN.id}.{TOKEN.secret}.{'G' * 64}",
        f"{TOKEN.id}.{TOKEN.secret}\n{TOKEN.id}.{TOKEN.secret}",
        "x" * 100_000,
    ],
)
def test_what_is_no_token_is_refused_without_repeating_it(text: str) -> None:
    """Half of it may be the secret."""
    with pytest.raises(ValueError, match="join token") as refused:
        read_token(text)
    assert TOKEN.secret not in str(refused.value)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (TokenRequest("Shop", "market"), "service is 'Shop': must be a DNS-1123 label"),
        (TokenRequest("shop", "a.b"), "namespace is 'a.b': must be"),
        (TokenRequest("shop", "market", "x y"), "uuid is 'x y': must be"),
        (TokenRequest("shop", "market", uses=0), "uses is 0: must be from 1 to 10000"),
        (TokenRequest("shop", "market", "u1", uses=2), "uses is 2: must be 1 for a token with a uuid"),
        (TokenRequest("shop", "market", valid=timedelta(seconds=1)), "must be from 1 minute to 366 days"),
        (TokenRequest("shop", "market", days=0), "days is 0: must be from 1 to 3652"),
        (TokenRequest("shop", "market", days=3653), "days is 3653: must be from 1 to 3652"),
        (TokenRequest("shop", "market", valid=timedelta(days=400)), "must be from 1 minute to 366 days"),
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(wanted: TokenRequest, words: str) -> None:
    """The field, its value, what would be right."""
    with pytest.raises(RequestError, match=words):
        recorded(wanted, "0123456789ab", "somebody", NOW)


def test_a_use_belongs_to_a_key(store: SqliteTokens) -> None:
    """Who asks again with it uses nothing; when all are used, only those keys come again."""
    assert [store.redeem(TOKEN, key, NOW).first for key in ("a", "b", "a")] == [True, True, False]
    with pytest.raises(TokenRefused) as refused:
        store.redeem(TOKEN, "c", NOW)
    assert (refused.value.reason, refused.value.token) == (TokenRefusal.USED_UP, TOKEN.id)
    store.give_back(TOKEN.id, "b")
    assert store.redeem(TOKEN, "c", NOW).first
    assert [each.used for each in store.tokens()] == [2]


def test_a_token_ends(store: SqliteTokens) -> None:
    """At its second, or revoked, for keys that have a use as well; a wrong secret learns nothing of it."""
    store.redeem(TOKEN, "a", NOW + DAY - timedelta(seconds=1))
    wrong = JoinToken(TOKEN.id, "w" * 43)
    reasons = []
    for token, key, at in (
        (TOKEN, "a", NOW + DAY),
        (wrong, "a", NOW + DAY),
        (JoinToken("f" * 12, "s" * 43), "a", NOW),
    ):
        with pytest.raises(TokenRefused) as refused:
            store.redeem(token, key, at)
        reasons.append(refused.value.reason)
    assert reasons == [TokenRefusal.EXPIRED, TokenRefusal.WRONG_SECRET, TokenRefusal.UNKNOWN]
    first = store.revoke(TOKEN.id, NOW)
    assert first == store.revoke(TOKEN.id, NOW + DAY)
    assert first.standing(NOW) == "revoked"
    with pytest.raises(TokenRefused, match="token_revoked"):
        store.redeem(TOKEN, "a", NOW)
    with pytest.raises(RequestError, match="join token 'xyz' does not exist"):
        store.revoke("xyz", NOW)


def test_the_file_is_private_and_holds_no_secret(store: SqliteTokens, tmp_path: Path) -> None:
    """Whoever copies it can join by none of its tokens."""
    store.redeem(TOKEN, "a", NOW)
    found = list(tmp_path.iterdir())
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    assert not [path for path in found if TOKEN.secret.encode() in path.read_bytes()]


def test_what_was_kept_is_there_after_a_restart(store: SqliteTokens, tmp_path: Path) -> None:
    """And what ended long ago is forgotten when the next is made."""
    store.redeem(TOKEN, "a", NOW)
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as again:
        assert again.tokens() == store.tokens()
        assert not again.redeem(TOKEN, "a", NOW).first
        later = recorded(TokenRequest("shop", "market"), "f" * 12, "", NOW + 100 * DAY)
        again.add(JoinToken(later.id, "s" * 43), later)
        assert [each.id for each in again.tokens()] == [later.id]


def test_two_processes_give_no_more_uses_than_there_are(store: SqliteTokens, tmp_path: Path) -> None:
    """Eight keys, two stores on one file, two uses."""
    given, barrier = list[str](), threading.Barrier(8)

    def redeem(key: str) -> None:
        with SqliteTokens.open(tmp_path / "tokens.sqlite") as own:
            barrier.wait(60)
            try:
                own.redeem(TOKEN, key, NOW)
            except TokenRefused:
                return
            given.append(key)

    threads = [threading.Thread(target=redeem, args=(str(key),)) for key in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(given) == 2
    assert [each.used for each in store.tokens()] == [2]


@pytest.mark.parametrize("put_back", [False, True])
def test_a_file_that_is_taken_away_lets_nobody_in_who_is_not_in_the_next(
    put_back: bool, store: SqliteTokens, tmp_path: Path
) -> None:
    """A server has it open: what others make and revoke in the one that is there it knows at once."""
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


def test_a_file_that_comes_back_is_used_again(store: SqliteTokens, tmp_path: Path) -> None:
    """Though there was no opening another one in its place meanwhile, as on a full disk."""
    path = tmp_path / "tokens.sqlite"
    path.rename(tmp_path / "aside")
    path.mkdir()
    for _ in range(2):
        with pytest.raises(StateError, match="Is a directory"):
            store.tokens()
    path.rmdir()
    (tmp_path / "aside").rename(path)
    assert store.redeem(TOKEN, "key", NOW).first


def test_where_there_is_no_room_for_a_page_more_every_token_is_revoked(tmp_path: Path) -> None:
    """Each row grows by it; what was not to be made any more is not made."""
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as store:
        identifiers = [f"{number:012x}" for number in range(60)]
        for each in identifiers:
            store.add(JoinToken(each, "s" * 43), replace(record(), id=each))
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StateError, match="database or disk is full"):
            for number in range(60, 200):
                added = replace(record(), id=f"{number:012x}")
                store.add(JoinToken(added.id, "s" * 43), added)
        later = NOW + timedelta(days=20_000)
        assert [store.revoke(each, later).revoked_at for each in identifiers] == [later] * 60


def test_a_store_of_before_there_were_pages_for_a_full_disk_opens(tmp_path: Path) -> None:
    """With what is in it, and then it has them."""
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


def test_another_file_is_no_store(tmp_path: Path) -> None:
    """One sentence each."""
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
