"""Tests of servers on a real etcd that was restored from an older copy, or emptied by hand."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.records.fields import PROXIES, entries_in, key_of_proxy, with_entries
from certs.shared_records.custody import SEAL
from meshwright.controller.sharing.store.domains import DOMAINS, IDENTITY
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Content, Fields
from meshwright.records.contract import RecordStore, ReplicaId
from meshwright.records.recovery.store import HealedRecords
from meshwright.records.update import Writer, update
from tests.kubernetes.etcd.conftest import EtcdStores
from tests.kubernetes.etcd.members import RealMember
from tests.tools.deadline import until
from tests.unit.records.test_contract import following, running

CART: Final = ProxyName.parse("x.cart.shop")
LATER: Final = ProxyName.parse("y.cart.shop")


def _issued(name: ProxyName, serial: str) -> LedgerEntry:
    now = datetime.now(UTC).replace(microsecond=0)
    return LedgerEntry.issued(serial, name, now, now + timedelta(days=1))


async def _write(store: RecordStore, entry: LedgerEntry) -> None:
    name = ProxyName.parse(entry.common_name)

    def change(fields: Fields | None) -> Fields | None:
        return with_entries(fields, (entry,))

    await update(store, key_of_proxy(name), change, Writer(ReplicaId("a")))


async def _stored(store: RecordStore, name: ProxyName) -> tuple[LedgerEntry, ...]:
    record = await store.read(key_of_proxy(name))
    return () if record is None else entries_in(name, Content.decode(record.content).fields)


async def test_restored_and_emptied_etcd_gets_back_what_servers_knew(
    own_member: RealMember, tmp_path: Path
) -> None:
    """A revocation and a proxy that are younger than the copy come back, by either of two servers."""
    async with EtcdStores(own_member.endpoint) as stores:

        def server(name: str) -> HealedRecords:
            return HealedRecords(
                stores.client(name), ReplicaId(name), DOMAINS, IDENTITY, lambda: datetime.now(UTC)
            )

        one, two, plain = server("a"), server("b"), stores.client("c")
        cart = _issued(CART, "3f9a02")
        revoked = cart.stamped({Stamp.REVOKED: StampDetail(cart.issued_at, "lost")})
        later = _issued(LATER, "3f9a03")
        await plain.write(SEAL, Content({"mesh": "ours"}, ReplicaId("c")).encode(), None)
        await _write(plain, cart)
        own_member.kill()
        own_member.copy_data(tmp_path / "copy")
        await asyncio.to_thread(own_member.again)
        for healed in (one, two):
            await healed.begin()
        async with (
            running(one.heal()),
            running(two.heal()),
            following(one, SEAL),
            following(two, SEAL),
            following(one, PROXIES) as heard,
            following(two, PROXIES) as also,
        ):

            async def is_whole() -> bool:
                return (await _stored(plain, CART), await _stored(plain, LATER)) == ((revoked,), (later,))

            await _write(one, revoked)
            await _write(two, later)
            keys = {key_of_proxy(CART), key_of_proxy(LATER)}
            await until(lambda: heard.known == also.known and heard.known.keys() == keys)
            own_member.kill()
            own_member.restore(tmp_path / "copy")
            await asyncio.to_thread(own_member.again)
            await until(is_whole)
            own_member.delete(b"/meshwright", b"/meshwright0")
            await until(is_whole)
            assert await plain.read(SEAL) is not None
            await until(lambda: heard.known == also.known)
            assert [changes.removed for changes in (*heard.calls, *also.calls) if changes.removed] == []
