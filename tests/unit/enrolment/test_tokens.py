"""Tests of join tokens: format, stored records, uses, revocation, and secrecy."""

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
    """Return the stored record of TOKEN."""
    return recorded(TokenRequest("shop", "market", uses=uses, **changes), TOKEN.id, "somebody", NOW)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteTokens]:
    """Return a store with TOKEN, of two uses."""
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as opened:
        opened.add(TOKEN, record(uses=2))
        yield opened


def test_token_is_read_as_it_is_written_and_prints_no_secret() -> None:
    """Tokens with and without pins are read back, with a line break at the end."""
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
def test_invalid_token_is_refused_without_repeating_its_text(text: str) -> None:
    """A part of the text may be the secret, and the message may reach a log."""
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
def test_invalid_token_request_is_refused_with_its_field(wanted: TokenRequest, words: str) -> None:
    """The message has the field, its value, and the valid values."""
    with pytest.raises(RequestError, match=words):
        recorded(wanted, "0123456789ab", "somebody", NOW)


def test_token_use_belongs_to_a_key(store: SqliteTokens) -> None:
    """A key that asks again needs no further use.

    After the last use other keys are refused, until a use is given back.
    """
    assert [store.redeem(TOKEN, key, NOW).first for key in ("a", "b", "a")] == [True, True, False]
    with pytest.raises(TokenRefused) as refused:
        store.redeem(TOKEN, "c", NOW)
    assert (refused.value.reason, refused.value.token) == (TokenRefusal.USED_UP, TOKEN.id)
    store.give_back(TOKEN.id, "b")
    assert store.redeem(TOKEN, "c", NOW).first
    assert [token.used for token in store.tokens()] == [2]


def test_expired_or_revoked_token_is_refused_for_used_keys_too(store: SqliteTokens) -> None:
    """A token expires to the second. With a wrong secret the reason does not reveal the expiry."""
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


def test_token_file_is_private_and_has_no_secret(store: SqliteTokens, tmp_path: Path) -> None:
    """A copy of the file must not allow a join with one of its tokens."""
    store.redeem(TOKEN, "a", NOW)
    paths = list(tmp_path.iterdir())
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o600}
    assert not [path for path in paths if TOKEN.secret.encode() in path.read_bytes()]


def test_tokens_remain_after_a_restart_and_old_ones_are_deleted(store: SqliteTokens, tmp_path: Path) -> None:
    """A token that expired long ago is deleted when the next one is added."""
    store.redeem(TOKEN, "a", NOW)
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as again:
        assert again.tokens() == store.tokens()
        assert not again.redeem(TOKEN, "a", NOW).first
        later = recorded(TokenRequest("shop", "market"), "f" * 12, "", NOW + 100 * DAY)
        again.add(JoinToken(later.id, "s" * 43), later)
        assert [token.id for token in again.tokens()] == [later.id]


def test_concurrent_stores_give_no_more_uses_than_the_token_has(store: SqliteTokens, tmp_path: Path) -> None:
    """Eight threads redeem a token of two uses, each with its own key and its own store of one file."""
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
    assert [token.used for token in store.tokens()] == [2]


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
