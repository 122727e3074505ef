"""Tests of three servers that change the root behind a faulty network, in an order that a seed decides."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Final

import pytest

from certs.authority_records.fields import AUTHORITY, state_in
from certs.authority_records.store import RecordedAuthority
from certs.errors import CertificateError
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_state import AuthorityState, is_step
from certs.roots.rotation import Rotation, aborted, advanced
from certs.state.sealing import RecordSeal
from meshwright.mesh.names import TrustDomain
from meshwright.records.content import Content
from meshwright.records.contract import Epoch, Record, ReplicaId
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.faulty_records import FaultyRecords, Network
from tests.tools.shared_records import LoopThread

DOMAIN: Final = TrustDomain("mesh.example")
SEAL: Final = RecordSeal(bytes(range(32)))
NAMES: Final = ("a", "b", "c")
STEPS: Final = 30


@dataclass
class History(Memory):
    """Content of a store that remembers all writes."""

    contents: list[Content] = field(default_factory=list)

    def put(self, key: Key, content: bytes) -> Record:
        """Store a content, and remember it."""
        self.contents.append(Content.decode(content))
        return super().put(key, content)

    def written(self) -> list[AuthorityState]:
        """Return the states of all writes, oldest first."""
        return [state_in(content.fields, SEAL) for content in self.contents]


class Servers:
    """Three servers, each with its authority once it could be opened."""

    def __init__(self, thread: LoopThread, seed: int, now: datetime) -> None:
        self.history, self.random, self.now = History(), Random(seed), now  # noqa: S311 - a test's
        self.network = Network(seed, share=0.3)
        self.stores = {
            name: RecordedAuthority(
                FaultyRecords(MemoryRecords(self.history, ReplicaId(name)), self.network),
                ReplicaId(name),
                thread.loop,
                SEAL,
            )
            for name in NAMES
        }
        self.authorities: dict[str, ChangingAuthority] = {}
        self.terms: dict[str, RecordedAuthority] = {}
        self.led = 0

    def act(self) -> None:
        """Let a server do something that it may do."""
        name = self.random.choice(NAMES)
        authority = self.authorities.get(name)
        self.now += timedelta(seconds=1)
        with suppress(CertificateError):
            if authority is None:
                self.authorities[name] = ChangingAuthority(self.stores[name], DOMAIN, self.now)
            elif self.random.random() < 0.2:
                self.led += 1
                self.terms[name] = self.stores[name].lead(Epoch(self.led))
            elif name in self.terms:
                self._step(authority, self.terms[name])
            else:
                authority.look(self.now)

    def _step(self, authority: ChangingAuthority, term: RecordedAuthority) -> None:
        """Take a step, which is in the store if the server says so."""
        rotation = authority.rotation
        if rotation is None:
            step: Rotation | None = authority.begin(self.now, store=term)
        else:
            step = (aborted if self.random.random() < 0.3 else advanced)(rotation, self.now)
            authority.step(step, self.now, term)
        assert step in [state.rotation for state in self.history.written()]
        assert authority.rotation == step


@pytest.mark.parametrize("seed", range(8))
def test_servers_behind_a_faulty_network_have_one_line_of_roots(seed: int, now: datetime) -> None:
    """Each write is a step from the one before, by the leader of its epoch, and all follow the last one."""
    with LoopThread() as thread:
        servers = Servers(thread, seed, now)
        for _ in range(STEPS):
            servers.act()
        servers.network.share = 0.0
        thread.run(servers.network.deliver_all())
        contents, states = servers.history.contents, servers.history.written()
        assert servers.network.faults > 5
        assert all(map(is_step, [AuthorityState(), *states], states))
        assert [content.count for content in contents] == [*range(1, len(contents) + 1)]
        assert [content.epoch for content in contents] == sorted(content.epoch for content in contents)
        leaders = dict[int, str]()
        for before, content, state in zip([AuthorityState(), *states], contents, states, strict=False):
            if state == before:  # the first write of a leader
                leaders[content.epoch] = content.by
            elif state.rotation != before.rotation:
                assert leaders[content.epoch] == content.by
        for store in servers.stores.values():
            authority = ChangingAuthority(store, DOMAIN, servers.now)
            assert (authority.rotation, store.read().state) == (states[-1].rotation, states[-1])
        for authority in servers.authorities.values():
            authority.look(servers.now)
            assert authority.rotation == states[-1].rotation
        assert AUTHORITY in servers.history.records
