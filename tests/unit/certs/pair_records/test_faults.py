"""Tests of three servers that issue and renew certificates behind a faulty network, as a seed decides."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Final

import pytest

from certs.contract import Names, Usage
from certs.errors import StateError
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import Pair, issue_pair
from certs.pair_records.fields import key_of_holder, serial_in
from certs.pair_records.store import RecordedPairs
from certs.state.sealing import RecordSeal
from certs.state.stored_pair import Holder
from meshwright.records.content import Content
from meshwright.records.contract import Record, ReplicaId
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.faulty_records import FaultyRecords, Network
from tests.tools.shared_records import LoopThread

SEAL: Final = RecordSeal(bytes(range(32)))
HOLDERS: Final = (Holder("services/shop/cart"), Holder("services/shop/store"))
DAY: Final = timedelta(days=1)
ACTS: Final = 30


@dataclass
class History(Memory):
    """Content of a store that remembers the serials written under each key."""

    serials: dict[Key, list[str]] = field(default_factory=dict)

    def put(self, key: Key, content: bytes) -> Record:
        """Store a content, and remember its serial."""
        serial = serial_in(Content.decode(content).fields)
        assert serial is not None
        self.serials.setdefault(key, []).append(serial)
        return super().put(key, content)


@pytest.mark.parametrize("seed", range(8))
def test_servers_behind_a_faulty_network_agree(
    seed: int, authority: CertificateAuthority, now: datetime
) -> None:
    """A pair replaces the one that its writer has seen, once. A returned pair is or was the stored one."""
    random, network, history = Random(seed), Network(seed, share=0.3), History()  # noqa: S311 - a test's
    before: dict[str, str | None] = {}
    with LoopThread() as thread:
        servers: list[RecordedPairs] = []
        for name in ("a", "b", "c"):
            client = FaultyRecords(MemoryRecords(history, ReplicaId(name)), network)
            servers.append(RecordedPairs(client, ReplicaId(name), thread.loop, SEAL))
            thread.start(servers[-1].follow())
        held: dict[tuple[int, Holder], Pair] = {}
        for _ in range(ACTS):
            number, holder = random.randrange(3), random.choice(HOLDERS)
            pair = issue_pair(authority, Usage.SERVICE, Names("service"), DAY, now)
            seen = held.get((number, holder))
            before[pair.leaf.serial] = None if seen is None else seen.leaf.serial
            with suppress(StateError):
                held[number, holder] = servers[number].keep(holder, pair, before[pair.leaf.serial])
                assert held[number, holder].leaf.serial in history.serials[key_of_holder(holder)]
        network.share = 0.0
        thread.run(network.deliver_all())
        assert network.faults > 5
        for holder in HOLDERS:
            serials = history.serials[key_of_holder(holder)]
            assert [before[serial] for serial in serials] == [None, *serials[:-1]]
            loaded = [server.load(holder) for server in servers]
            assert [pair and pair.leaf.serial for pair in loaded] == [serials[-1]] * 3
