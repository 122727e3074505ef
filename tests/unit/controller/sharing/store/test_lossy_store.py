"""Servers on a store that loses records at random: nothing is lost that one living server had followed."""

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.records.fields import PROXIES, entries_in, key_of_proxy, name_of_record, with_entries
from meshwright.controller.sharing.store.domains import DOMAINS
from meshwright.enrolment.store.token_fields import TOKENS, key_of_token, with_revocation
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Content, Fields
from meshwright.records.contract import Record, ReplicaId
from meshwright.records.key import Key
from meshwright.records.update import Writer, update
from tests.tools.deadline import until
from tests.unit.records.recovery.lossy_memory import NOW, LossyMemory, Replica, replica_of, running

NAMES = tuple(ProxyName.parse(f"{name}.cart.shop") for name in "xyz")
STEPS = 60
REPLICAS = 3


def facts(record: Record) -> Iterator[tuple[str, ...]]:
    """Yield what must not be lost of a record: certificates, tokens, and their revocations."""
    fields: Any = Content.decode(record.content).fields
    if record.key.startswith(PROXIES):
        for entry in entries_in(name_of_record(record.key), fields):
            yield record.key, entry.serial
            if entry.revoked_at is not None:
                yield record.key, entry.serial, "revoked"
    else:
        yield (record.key,)
        if "revoked_at" in fields:
            yield record.key, "revoked"


class Scene:
    """Servers, their store, its snapshots, and steps that a seed decides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a test's
        self.memory = LossyMemory()
        self.replicas = [replica_of(self.memory, f"r{number}", DOMAINS) for number in range(REPLICAS)]
        self.snapshots: list[dict[Key, Record]] = [{}]
        self.serials = iter(range(1, 10_000))
        self.done: list[tuple[str, ...]] = []

    async def step(self) -> None:
        """Take one step."""
        replica, key = self.random.choice(self.replicas), key_of_proxy(self.random.choice(NAMES))
        match self.random.randrange(12):
            case 0 | 1 | 2:
                await self._change(replica, key, self._issued)
            case 3 | 4:
                await self._change(replica, key, self._revoked)
            case 5:
                await self._change(replica, key_of_token(f"{self.random.randrange(3)}"), self._token)
            case 6:
                self.snapshots.append(dict(self.memory.records))
            case 7:
                self.memory.restore(self.random.choice(self.snapshots))
            case 8 if self.memory.records:
                self.memory.drop(self.random.choice(sorted(self.memory.records)))
            case 9:
                self.memory.restore({})
            case 10:
                replica.connection.is_cut = True
            case _:
                replica.connection.heal()

    async def _change(self, replica: Replica, key: Key, change: Any) -> None:
        writer = Writer(ReplicaId(f"r{self.replicas.index(replica)}"))
        version = await update(replica.records, key, lambda fields: change(key, fields), writer)
        if version.revision is not None:
            self.done += facts(Record(key, version.encoded, version.revision))

    def _issued(self, key: Key, fields: Fields | None) -> Fields | None:
        name = name_of_record(key)
        if self.random.random() < 0.1:
            return None
        entry = LedgerEntry.issued(f"{next(self.serials):04x}", name, NOW, NOW + timedelta(days=90))
        return with_entries(fields, (entry,))

    def _revoked(self, key: Key, fields: Fields | None) -> Fields | None:
        entries = entries_in(name_of_record(key), fields)
        if not entries:
            return None
        entry = self.random.choice(entries)
        return with_entries(fields, (entry.stamped({Stamp.REVOKED: StampDetail(NOW, "lost")}),))

    def _token(self, key: Key, fields: Fields | None) -> Fields | None:
        del key
        if fields is None:
            return {"expires_at": int((NOW + timedelta(days=1)).timestamp())}
        return with_revocation(fields, NOW)

    def present(self) -> set[tuple[str, ...]]:
        """Return the facts in the store."""
        return {fact for record in self.memory.records.values() for fact in facts(record)}

    def known(self) -> set[tuple[str, ...]]:
        """Return the facts that any server was told, or has written, at any time."""
        told = (record for item in self.replicas for changes in item.lists for record in changes.records)
        return {*self.done, *(fact for record in told for fact in facts(record))}


@pytest.mark.parametrize("seed", range(30))
async def test_nothing_is_lost_that_a_living_server_knew(seed: int) -> None:
    """Certificates, tokens and revocations come back after snapshots and cuts; then it is quiet."""
    scene = Scene(seed)
    async with running(*scene.replicas, prefixes=(PROXIES, TOKENS)):
        await until(lambda: all(len(replica.lists) == 2 for replica in scene.replicas))
        for _ in range(STEPS):
            await scene.step()
        for replica in scene.replicas:
            replica.connection.heal()
        stored = scene.memory.records
        await until(
            lambda: (
                scene.known() <= scene.present()
                and all(
                    replica.heard.keys() == stored.keys()
                    and all(replica.heard[key].content == stored[key].content for key in stored)
                    for replica in scene.replicas
                )
            ),
            explain=lambda: scene.known() - scene.present(),
        )
        writes = scene.memory.writes
        await until(lambda: not any(replica.records.remarks() for replica in scene.replicas))
        assert scene.memory.writes == writes
