"""Tests of steps of a root change with a full disk or a clock that is behind."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from certs.authority_files.store import AuthorityFiles
from certs.errors import StateError
from certs.ledger.entry import LedgerEntry
from certs.roots.authority import ChangingAuthority
from certs.roots.evidence import BlockReason, ServerEvidence
from certs.roots.proxy_evidence import RootAcknowledgements
from certs.roots.rotation import Fingerprint, advanced
from meshwright.controller.roots.change import RootChange
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.unit.certs.ledger.memory import MemoryLedger, Record

NOW: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
CART: Final = ProxyName.parse("cart.shop.prod")


@pytest.fixture
def authority(tmp_path: Path) -> ChangingAuthority:
    """Return a CA without a root change."""
    return ChangingAuthority(AuthorityFiles(tmp_path), TrustDomain("cluster.local"), NOW)


def _change(
    authority: ChangingAuthority, ledger: MemoryLedger, followed: list[str] | None = None
) -> RootChange:
    """Return a root change with a fixed clock, for a server that always follows at once.

    The roots that the server has followed are added to `followed`.
    """

    async def said() -> RootAcknowledgements:
        trusted = authority.trusted_by(authority.trust_bundle())
        return RootAcknowledgements(
            (), frozenset(), {}, ServerEvidence(frozenset({Fingerprint(authority.fingerprint)}), trusted)
        )

    async def stepped() -> None:
        await asyncio.sleep(0)
        if followed is not None:
            followed.append(authority.fingerprint)

    return RootChange(authority, ledger, said, stepped, lambda: NOW)


async def test_step_of_a_root_change_succeeds_although_the_ledger_cannot_be_written(
    authority: ChangingAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is updated as soon as there is room, even if the change is over by then."""
    monkeypatch.setattr("meshwright.controller.roots.change.LOOK_SECONDS", 0.01)
    record = Record()
    ledger = MemoryLedger(record)
    ledger.name_authority(authority.fingerprint)
    authority.step(advanced(authority.begin(NOW), NOW), NOW)
    ledger.change_authority(authority.fingerprint)
    change = _change(authority, ledger)
    record.full = True
    change_status = await change.abort()
    assert change_status.rotation is not None
    assert change_status.rotation.aborted
    assert ledger.authority() == change_status.rotation.other, "who signed before is noted still"
    record.full = False
    stepping = asyncio.create_task(change.stepping())
    try:
        async with asyncio.timeout(60):
            while authority.rotation is not None or ledger.authority() != authority.fingerprint:
                await asyncio.sleep(0)
    finally:
        stepping.cancel()
        await asyncio.gather(stepping, return_exceptions=True)


async def test_stage_begins_after_the_newest_certificate_although_the_clock_is_behind(
    authority: ChangingAuthority, tmp_path: Path
) -> None:
    """An earlier start would count proxies with old files as proxies that were given both roots."""
    ledger, later = MemoryLedger(Record()), NOW + timedelta(hours=1)
    ledger.record(
        LedgerEntry.issued("0a", CART, later, later + timedelta(days=1), signer=authority.fingerprint)
    )
    change = _change(authority, ledger)
    change_status = await change.begin()
    assert change_status.rotation is not None
    assert change_status.rotation.since == later
    assert [holdout.why for holdout in change_status.holdouts] == [
        (BlockReason.NEVER_CONNECTED, BlockReason.CHANNEL_TRUST)
    ]
    assert (
        ChangingAuthority(AuthorityFiles(tmp_path), TrustDomain("cluster.local"), NOW).rotation
        == change_status.rotation
    )


async def test_step_of_another_server_is_followed_in_place_of_the_own_one(
    authority: ChangingAuthority, tmp_path: Path
) -> None:
    """All parts are informed of the other server's step, as of an own one. The command gets an error.

    The ledger learns the new signer at the next look.
    """
    other = ChangingAuthority(AuthorityFiles(tmp_path), TrustDomain("cluster.local"), NOW)
    ledger, followed = MemoryLedger(Record()), list[str]()
    ledger.name_authority(authority.fingerprint)
    change = _change(authority, ledger, followed)
    second = advanced(other.begin(NOW), NOW)
    other.step(second, NOW)
    with pytest.raises(StateError, match="was changed by another server first"):
        await change.begin()
    assert (authority.rotation, followed) == (second, [other.fingerprint])
    await change.give_up([])
    assert ledger.authority() == other.fingerprint
    assert followed == [other.fingerprint] * 2
