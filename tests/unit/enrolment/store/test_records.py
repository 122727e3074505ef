"""Tests of join tokens in shared records, beyond the contract of stores: races, faults, foreign records."""

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from certs.errors import StateError
from meshwright.enrolment.store.contract import TokenRefused
from meshwright.enrolment.store.records import RecordedTokens
from meshwright.enrolment.store.token_fields import (
    first_slot,
    is_given_back,
    key_of_token,
    key_of_use,
    use_fields,
)
from meshwright.enrolment.tokens import JoinToken, TokenRequest, recorded
from meshwright.records.content import Content
from meshwright.records.contract import ReplicaId
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.records.threads import CallOnLoopError
from tests.tools.hypothesis_profiles import examples
from tests.tools.shared_records import Fault, FaultyRecords, LoopThread, away
from tests.unit.enrolment.store.tokens import DAY, NOW, TOKEN, record

TOKEN_KEY: Final = key_of_token(TOKEN.id)


class Server:
    """One server: its store of tokens, and its client of the records."""

    def __init__(self, thread: LoopThread, memory: Memory, name: str) -> None:
        self.client = FaultyRecords(MemoryRecords(memory, ReplicaId(name)))
        self.tokens = RecordedTokens(self.client, ReplicaId(name), thread.loop)
        self._thread = thread
        self._memory = memory
        thread.start(self.tokens.follow())

    def heal(self) -> None:
        """Connect with the records again."""
        self._thread.run(_called(self.client.heal))

    def put(self, key: Key, content: bytes) -> None:
        """Write a record as another program would."""
        self._thread.run(_called(lambda: self._memory.put(key, content)))


async def _called(call: object) -> None:
    assert callable(call)
    call()


@pytest.fixture(scope="module")
def thread() -> Iterator[LoopThread]:
    """Provide the event loop of the stores."""
    with LoopThread() as made:
        yield made


@pytest.fixture
def memory() -> Memory:
    """Return the shared records."""
    return Memory()


@pytest.fixture
def here(thread: LoopThread, memory: Memory) -> Server:
    """Return one server, which has added TOKEN with one use."""
    server = Server(thread, memory, "here")
    server.tokens.add(TOKEN, record())
    return server


@pytest.fixture
def there(thread: LoopThread, memory: Memory, here: Server) -> Server:
    """Return another server."""
    del here
    return Server(thread, memory, "there")


def uses(memory: Memory, token: JoinToken = TOKEN) -> list[Key]:
    """Return the keys of the uses of a token in the store, without those that were given back."""
    return [
        key
        for key, record in memory.records.items()
        if key.startswith(f"{key_of_token(token.id)}/uses/")
        and not is_given_back(Content.decode(record.content).fields)
    ]


def faults(server: Server, *given: Fault) -> None:
    """Give the next writes of a server these faults."""
    rest = iter(given)
    server.client.fault = lambda: next(rest, Fault.NONE)


def overtaken(server: Server, memory: Memory, key: Key, content: Content) -> None:
    """Let another server write a record just before the next write of this one."""

    def overtake() -> Fault:
        server.client.fault = lambda: Fault.NONE
        memory.put(key, content.encode())
        return Fault.NONE

    server.client.fault = overtake


def test_last_use_goes_to_one_of_two_servers(here: Server, memory: Memory) -> None:
    """Both have found it free; the write of the other one comes first."""
    key = key_of_use(TOKEN.id, 0)
    overtaken(here, memory, key, Content(use_fields("b", NOW), ReplicaId("there")))
    with pytest.raises(TokenRefused, match="token_used_up"):
        here.tokens.redeem(TOKEN, "a", NOW)
    assert uses(memory) == [key]
    assert here.tokens.redeem(TOKEN, "b", NOW).first is False


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_key_gets_one_use_after_a_lost_request_or_answer(
    here: Server, there: Server, memory: Memory, fault: Fault
) -> None:
    """The outcome is looked up, so the use can be given back after a failed issue."""
    faults(here, fault)
    assert here.tokens.redeem(TOKEN, "a", NOW).first
    assert [token.used for token in there.tokens.tokens()] == [1]
    here.tokens.give_back(TOKEN.id, "a")
    assert uses(memory) == []


def test_key_keeps_a_use_whose_outcome_stayed_unknown(here: Server, there: Server, memory: Memory) -> None:
    """The store took the write and then went away. The machine asks again, at any server."""
    here.client.read_fault = lambda: Fault.AFTER if uses(memory) else Fault.NONE
    faults(here, Fault.AFTER)
    with pytest.raises(StateError, match="shared join tokens cannot be used"):
        here.tokens.redeem(TOKEN, "a", NOW)
    here.client.read_fault = lambda: Fault.NONE
    assert [server.tokens.redeem(TOKEN, "a", NOW).first for server in (there, here)] == [False, False]
    assert len(uses(memory)) == 1


def test_repeated_join_at_another_server_that_has_not_heard_of_the_first_takes_no_use(
    thread: LoopThread, memory: Memory
) -> None:
    """The connection that brings changes is slow, and the token has many uses."""
    here, there = (Server(thread, memory, name) for name in ("here", "there"))
    here.tokens.add(TOKEN, record(uses=100))
    there.client.is_cut = True
    assert here.tokens.redeem(TOKEN, "a", NOW).first
    assert not there.tokens.redeem(TOKEN, "a", NOW).first
    assert uses(memory) == [key_of_use(TOKEN.id, first_slot("a", 100))]


def test_use_given_back_elsewhere_is_found_before_this_server_hears_of_it(
    here: Server, there: Server
) -> None:
    """Uses that others had are looked up before a machine is refused."""
    here.tokens.redeem(TOKEN, "a", NOW)
    there.client.is_cut = True
    here.tokens.give_back(TOKEN.id, "a")
    assert there.tokens.redeem(TOKEN, "b", NOW).first


def test_revocation_elsewhere_counts_before_this_server_hears_of_it(
    here: Server, there: Server, memory: Memory
) -> None:
    """The token is read in the store after its use is taken, and the use is given back."""
    here.client.is_cut = True
    there.tokens.revoke(TOKEN.id, NOW)
    with pytest.raises(TokenRefused, match="token_revoked"):
        here.tokens.redeem(TOKEN, "a", NOW)
    assert uses(memory) == []


def test_token_that_is_unknown_here_is_looked_up(here: Server, there: Server) -> None:
    """It may have been made at another server a moment ago. Known tokens are recognised without the store."""
    there.client.is_cut = True
    made = recorded(TokenRequest("shop", "market"), "f" * 12, "", NOW)
    token = JoinToken(made.id, "t" * 43)
    here.tokens.add(token, made)
    with away(there.client):
        there.tokens.recognise(TOKEN)
        with pytest.raises(StateError):
            there.tokens.recognise(token)
        with pytest.raises(StateError):
            there.tokens.redeem(TOKEN, "a", NOW)
    there.tokens.recognise(token)
    assert there.tokens.redeem(token, "a", NOW).first


@pytest.mark.parametrize("content", [b"{", b'{"form":1,"count":1,"epoch":0,"by":"b","fields":{}}'])
def test_unreadable_records_are_named_and_left_as_they_are(
    here: Server, memory: Memory, content: bytes
) -> None:
    """An unreadable token gives no entitlement, and an unreadable use counts as one."""
    made = recorded(TokenRequest("shop", "market", uses=2), "f" * 12, "", NOW)
    token = JoinToken(made.id, "t" * 43)
    here.tokens.add(token, made)
    taken = key_of_use(token.id, first_slot("a", 2))
    with capture_logs() as logs:
        here.put(TOKEN_KEY, content)
        here.put(taken, content)
    assert [(log["event"], log["key"]) for log in logs] == [
        ("record of a join token cannot be read", TOKEN_KEY),
        ("use of a join token cannot be read", taken),
    ]
    for call in (
        lambda: here.tokens.redeem(TOKEN, "a", NOW),
        lambda: here.tokens.revoke(TOKEN.id, NOW),
    ):
        with pytest.raises(StateError, match=f"record {TOKEN_KEY}: "):
            call()
    assert here.tokens.redeem(token, "a", NOW).first
    with pytest.raises(TokenRefused, match="token_used_up"):
        here.tokens.redeem(token, "b", NOW)
    assert [memory.records[key].content for key in (TOKEN_KEY, taken)] == [content] * 2
    assert [(token.id, token.used) for token in here.tokens.tokens()] == [(TOKEN.id, 0), ("f" * 12, 2)]


def test_foreign_key_below_the_tokens_is_passed_over(here: Server) -> None:
    """A newer version may have records of another kind there."""
    with capture_logs() as logs:
        here.put(Key(f"{TOKEN_KEY}/audit/0"), b"{}")
    assert [log["reason"] for log in logs] == [
        "the key is not of the form tokens/ID or tokens/ID/uses/NUMBER"
    ]
    assert here.tokens.tokens() == (record(),)


def test_revoked_token_stays_revoked_where_the_store_went_back(here: Server, memory: Memory) -> None:
    """An older snapshot of the store is restored."""
    older = memory.records[TOKEN_KEY].content
    revoked = here.tokens.revoke(TOKEN.id, NOW)
    here.put(TOKEN_KEY, older)
    assert here.tokens.tokens() == (revoked,)
    with pytest.raises(TokenRefused, match="token_revoked"):
        here.tokens.redeem(TOKEN, "a", NOW)


def test_use_that_the_store_has_lost_goes_to_no_other_key(here: Server, memory: Memory) -> None:
    """Until the record is written again, a token with one use would have another one."""
    assert here.tokens.redeem(TOKEN, "a", NOW).first
    here.client.is_cut = True
    memory.drop(key_of_use(TOKEN.id, 0))
    with pytest.raises(TokenRefused, match="token_used_up"):
        here.tokens.redeem(TOKEN, "b", NOW)
    here.tokens.redeem(TOKEN, "a", NOW)
    assert uses(memory) == [key_of_use(TOKEN.id, 0)]


def test_old_tokens_are_removed_with_their_uses(here: Server, there: Server, memory: Memory) -> None:
    """A use whose token is gone would stay for ever. A failing removal does not hinder the new token."""
    here.tokens.redeem(TOKEN, "a", NOW)
    for number, fault in ((1, Fault.BEFORE), (2, Fault.NONE)):
        faults(there, Fault.NONE, fault)
        there.client.read_fault = lambda: Fault.NONE
        made = recorded(TokenRequest("shop", "market"), f"{number:012x}", "", NOW + 100 * DAY)
        there.tokens.add(JoinToken(made.id, "s" * 43), made)
    assert sorted(memory.records) == [key_of_token(f"{number:012x}") for number in (1, 2)]


def test_unknown_fields_of_a_token_are_kept(here: Server, memory: Memory) -> None:
    """A newer version may have added some."""
    fields = Content.decode(memory.records[TOKEN_KEY].content).fields
    here.put(TOKEN_KEY, Content({**fields, "note": "x"}, ReplicaId("newer"), 2).encode())
    here.tokens.revoke(TOKEN.id, NOW)
    assert Content.decode(memory.records[TOKEN_KEY].content).fields["note"] == "x"


def test_calls_that_wait_are_errors_on_the_event_loop(thread: LoopThread, here: Server) -> None:
    """They would wait for themselves for ever."""

    async def call() -> None:
        with pytest.raises(CallOnLoopError):
            here.tokens.redeem(TOKEN, "a", NOW)
        here.tokens.recognise(TOKEN)

    thread.run(call())


ACTS: Final = (*["redeem"] * 12, *["give back"] * 4, *["heal"] * 3, "cut", "away", "revoke")
STEPS: Final = st.lists(
    st.tuples(st.sampled_from(ACTS), st.integers(0, 2), st.sampled_from("abcd")), min_size=10, max_size=40
)


@settings(max_examples=examples(20, fresh=160), deadline=None)
@given(steps=STEPS, seed=st.integers(0, 2**16))
def test_servers_with_faults_never_give_more_uses_than_the_token_has(
    thread: LoopThread, steps: list[tuple[str, int, str]], seed: int
) -> None:
    """No use is given after a revocation, and a key that asks again keeps its use."""
    memory, draws = Memory(), random.Random(seed)  # noqa: S311 - a test
    servers = [Server(thread, memory, f"server-{number}") for number in range(3)]
    servers[0].tokens.add(TOKEN, record(uses=2))
    given, is_revoked = set[str](), False
    for server in servers:
        server.client.fault = lambda: draws.choice((*[Fault.NONE] * 6, Fault.BEFORE, Fault.AFTER))
        server.client.read_fault = lambda: draws.choice((*[Fault.NONE] * 12, Fault.AFTER))
    for act, number, key in steps:
        server = servers[number]
        with suppress(StateError, TokenRefused):
            match act:
                case "redeem":
                    server.tokens.redeem(TOKEN, key, NOW)
                    assert not is_revoked
                    given.add(key)
                case "give back" if key in given:
                    given.discard(key)
                    server.tokens.give_back(TOKEN.id, key)
                case "cut":
                    server.client.is_cut = True
                case "away":
                    server.client.is_away = True
                case "heal":
                    server.heal()
                case "revoke":
                    server.tokens.revoke(TOKEN.id, NOW)
                    is_revoked = True
                case _:
                    pass
        assert len(given) <= 2
        assert len(uses(memory)) <= 2
