"""Property of the shared ledger: three servers with faults keep all promises, and agree in the end."""

import enum
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certs.errors import StateError
from certs.ledger.contract import UnwrittenError
from certs.ledger.records.fields import key_of_proxy
from meshwright.mesh.identity import ProxyName
from tests.tools.hypothesis_profiles import examples
from tests.tools.shared_records import Fault, LoopThread
from tests.unit.certs.ledger.entries import START, new_entry, proxy
from tests.unit.certs.ledger.records.servers import NEVER_REVOKED, NameRevoked, Server, Servers

NAMES: Final = ("u1", "u2")
SERVERS: Final = 3
ROUNDS: Final = 6
"""Rounds of writing after which the servers must agree."""


class Act(enum.Enum):
    """Acts of a server, of its network, and of an operator at the store."""

    ISSUE = "issue"
    REVOKE = "revoke"
    CLAIM = "claim"
    ADMIT = "admit"
    WRITE = "write"
    FETCH = "fetch"
    CUT = "cut"
    AWAY = "away"
    HEAL = "heal"
    DELETE = "delete"
    SNAPSHOT = "snapshot"
    RESTORE = "restore"


@dataclass
class Mesh:
    """Servers of one store, and the model: what was promised to somebody."""

    servers: Servers
    issued: set[str] = field(default_factory=set)
    perhaps: set[str] = field(default_factory=set)
    """Serials whose issuing failed with an unknown outcome: nobody has the certificates."""
    revoked: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    snapshots: dict[ProxyName, bytes] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1000)))

    def act(self, act: Act, server: Server, name: ProxyName) -> None:
        """Let one thing happen, and compare the answer with the model."""
        match act:
            case Act.ISSUE:
                self._issue(server, name)
            case Act.REVOKE:
                self._revoke(server, name)
            case Act.CLAIM:
                for entry in server.ledger.entries_of(name):
                    server.ledger.claim(entry.serial, START)
                    self.claimed.add(entry.serial)
            case Act.ADMIT:
                server.ledger.admit((name,), START)
            case Act.WRITE:
                with suppress(StateError):
                    server.ledger.write_unwritten()
            case Act.FETCH:
                with suppress(StateError):
                    self.servers.thread.run(server.ledger.fetch(name))
            case Act.CUT:
                server.store.is_cut = True
            case Act.AWAY:
                server.store.is_away = True
            case Act.HEAL:
                self.servers.heal(server)
            case _:
                self._operate(act, name)

    def _operate(self, act: Act, name: ProxyName) -> None:
        key = key_of_proxy(name)
        record = self.servers.memory.records.get(key)
        if act is Act.DELETE and record is not None:
            self.servers.delete(key)
        elif act is Act.SNAPSHOT and record is not None:
            self.snapshots[name] = record.content
        elif act is Act.RESTORE and name in self.snapshots:
            self.servers.put(key, self.snapshots[name])

    def _issue(self, server: Server, name: ProxyName) -> None:
        is_revoked = any(entry.revoked_at is not None for entry in server.ledger.entries_of(name))
        serial = f"{next(self.numbers):x}"
        try:
            server.ledger.record(new_entry(serial, name.uuid), NEVER_REVOKED)
        except NameRevoked:
            assert self.revoked or self.perhaps
            self.perhaps.add(serial)
        except StateError:
            self.perhaps.add(serial)
        else:
            assert not is_revoked
            assert server.ledger.entry(serial) is not None
            self.issued.add(serial)

    def _revoke(self, server: Server, name: ProxyName) -> None:
        for entry in server.ledger.entries_of(name):
            with suppress(UnwrittenError):
                server.ledger.revoke(entry.serial, START)
            self.revoked.add(entry.serial)
            there = server.ledger.entry(entry.serial)
            assert there is not None
            assert there.revoked_at is not None

    def require_agreement(self) -> None:
        """Mend everything, let all servers write, and compare them with the model."""
        for server in self.servers.all:
            server.store.fault = server.store.read_fault = lambda: Fault.NONE
        self.servers.heal(*self.servers.all)
        for _ in range(ROUNDS):
            for server in self.servers.all:
                server.ledger.write_unwritten()
        assert [server.ledger.unwritten for server in self.servers.all] == [0] * SERVERS
        new = self.servers.start()
        entries = new.ledger.entries()
        assert [server.ledger.entries() for server in self.servers.all] == [entries] * (SERVERS + 1)
        assert self.issued <= {entry.serial for entry in entries} <= self.issued | self.perhaps
        for entry in entries:
            is_revoked = entry.revoked_at is not None
            assert is_revoked or entry.serial not in self.revoked
            assert not is_revoked or entry.serial in self.revoked | self.perhaps
            assert is_revoked or (entry.claimed_at is not None) == (entry.serial in self.claimed)


@pytest.fixture(scope="module")
def thread() -> Iterator[LoopThread]:
    """Provide the event loop of the stores of all examples."""
    with LoopThread() as made:
        yield made


def _faults(draws: random.Random, share: float) -> Fault:
    return draws.choice((Fault.BEFORE, Fault.AFTER)) if draws.random() < share else Fault.NONE


STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from((*Act, Act.ISSUE, Act.ISSUE, Act.REVOKE, Act.HEAL)),
        st.integers(0, SERVERS - 1),
        st.sampled_from(NAMES),
    ),
    max_size=40,
)


@settings(max_examples=examples(20, fresh=160), deadline=None)
@given(steps=STEPS, seed=st.integers(0, 2**16))
def test_servers_with_faults_keep_promises_and_agree(
    thread: LoopThread, steps: list[tuple[Act, int, str]], seed: int
) -> None:
    """No server issues a certificate of a name whose revocation it knows, and no revocation is ever lost.

    Writes and their answers are lost, servers are cut from the store, records are deleted, and an older
    snapshot of one is restored.
    """
    mesh = Mesh(Servers(thread))
    draws = random.Random(seed)  # noqa: S311 - a test
    for _ in range(SERVERS):
        server = mesh.servers.start()
        server.store.fault = lambda: _faults(draws, 0.3)
        server.store.read_fault = lambda: _faults(draws, 0.1)
    for act, number, uuid in steps:
        mesh.act(act, mesh.servers.all[number], proxy(uuid))
    mesh.require_agreement()
