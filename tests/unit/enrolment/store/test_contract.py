"""Tests of the contract of stores of join tokens."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from certs.errors import RequestError, StateError
from meshwright.enrolment.store.contract import TokenRefused, TokenStore
from meshwright.enrolment.store.records import RecordedTokens
from meshwright.enrolment.store.sqlite import SqliteTokens
from meshwright.enrolment.tokens import JoinToken, TokenRefusal, TokenRequest, recorded
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import LoopThread
from tests.unit.enrolment.store.tokens import DAY, NOW, TOKEN, record


class Stores(Protocol):
    """Factory of stores of the same tokens."""

    def open(self) -> TokenStore:
        """Open another store, as another process or server would; it is closed with the test."""

    def content(self) -> bytes:
        """Return all that is stored."""


@dataclass
class SqliteStores:
    """Factory of stores with one file."""

    path: Path
    stack: ExitStack

    def open(self) -> TokenStore:
        """Open the file once more."""
        return self.stack.enter_context(SqliteTokens.open(self.path))

    def content(self) -> bytes:
        """Return the content of the file and its journal."""
        return b"".join(path.read_bytes() for path in self.path.parent.iterdir())


@dataclass
class RecordedStores:
    """Factory of stores on shared records: each is another server."""

    thread: LoopThread
    memory: Memory = field(default_factory=Memory)
    opened: int = 0

    def open(self) -> TokenStore:
        """Start another server, which follows the records."""
        self.opened += 1
        replica = ReplicaId(f"server-{self.opened}")
        store = RecordedTokens(MemoryRecords(self.memory, replica), replica, self.thread.loop)
        self.thread.start(store.follow())
        return store

    def content(self) -> bytes:
        """Return all records with their keys."""
        return b"".join(key.encode() + record.content for key, record in self.memory.records.items())


@pytest.fixture(params=["sqlite", "recorded"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """Provide stores without tokens, of each kind in turn."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield SqliteStores(tmp_path / "tokens.sqlite", stack)
        else:
            yield RecordedStores(stack.enter_context(LoopThread()))


@pytest.fixture
def store(stores: Stores) -> TokenStore:
    """Return a store with TOKEN, of two uses."""
    opened = stores.open()
    opened.add(TOKEN, record(uses=2))
    return opened


def test_token_use_belongs_to_a_key(store: TokenStore) -> None:
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


def test_expired_or_revoked_token_is_refused_for_used_keys_too(store: TokenStore) -> None:
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


def test_tokens_remain_after_a_restart_and_old_ones_are_deleted(stores: Stores, store: TokenStore) -> None:
    """A token that expired long ago is deleted when the next one is added."""
    store.redeem(TOKEN, "a", NOW)
    again = stores.open()
    assert again.tokens() == store.tokens()
    assert not again.redeem(TOKEN, "a", NOW).first
    later = recorded(TokenRequest("shop", "market"), "f" * 12, "", NOW + 100 * DAY)
    again.add(JoinToken(later.id, "s" * 43), later)
    assert [token.id for token in again.tokens()] == [token.id for token in store.tokens()] == [later.id]


def test_concurrent_stores_give_no_more_uses_than_the_token_has(stores: Stores, store: TokenStore) -> None:
    """Eight threads redeem a token of two uses, each with its own key and its own store of one file."""
    given, barrier = list[str](), threading.Barrier(8)

    def redeem(key: str) -> None:
        own = stores.open()
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


def test_stored_token_has_all_its_facts(stores: Stores, store: TokenStore) -> None:
    """Tokens are listed by the time of their making; of the secret only a digest is stored."""
    later = recorded(TokenRequest("cart", "shop", "u1", 1, DAY, 7), "f" * 12, "somebody", NOW + DAY)
    earlier = recorded(TokenRequest("cart", "shop"), "e" * 12, "", NOW - DAY)
    for made in (later, earlier):
        store.add(JoinToken(made.id, "t" * 43), made)
    assert store.tokens() == stores.open().tokens() == (earlier, record(uses=2), later)
    assert TOKEN.secret.encode() not in stores.content()


def test_token_is_recognised_by_its_secret(store: TokenStore, stores: Stores) -> None:
    """An unknown token has no id in the error, because nobody has shown that it exists."""
    refusals = []
    for shown in (JoinToken(TOKEN.id, "w" * 43), JoinToken("f" * 12, TOKEN.secret), JoinToken("/", "w")):
        with pytest.raises(TokenRefused) as refused:
            store.recognise(shown)
        refusals.append((refused.value.reason, refused.value.token))
    assert refusals == [
        (TokenRefusal.WRONG_SECRET, TOKEN.id),
        (TokenRefusal.UNKNOWN, ""),
        (TokenRefusal.UNKNOWN, ""),
    ]
    store.recognise(TOKEN)
    stores.open().recognise(TOKEN)


def test_token_is_added_once(store: TokenStore) -> None:
    """A second token with the id is refused, and changes nothing."""
    with pytest.raises(StateError):
        store.add(JoinToken(TOKEN.id, "t" * 43), record(uses=9))
    store.recognise(TOKEN)
    assert store.tokens() == (record(uses=2),)


def test_use_that_another_server_gave_back_can_be_taken(store: TokenStore, stores: Stores) -> None:
    """Uses count for all servers together, and each key has one."""
    other = stores.open()
    assert [store.redeem(TOKEN, "a", NOW).first, other.redeem(TOKEN, "b", NOW).first] == [True, True]
    assert not other.redeem(TOKEN, "a", NOW).first
    for opened in (store, other):
        with pytest.raises(TokenRefused, match="token_used_up"):
            opened.redeem(TOKEN, "c", NOW)
    other.give_back(TOKEN.id, "b")
    other.give_back(TOKEN.id, "unknown")
    assert store.redeem(TOKEN, "c", NOW).first
    assert [token.used for token in other.tokens()] == [2]
