"""Why a proxy is behind, in one clause each."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from certs.ledger.entry import LedgerEntry
from meshwright.admin.pages.proxies.sync_reason import ProxyEvidence, duration, is_dead, newest, pending, why
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName
from xds.protocol.resources.resource import LISTENER, ResourceName
from xds.protocol.wire import Rejection
from xds.stream_status import StreamStatus, SyncState, Variant

NAME = ProxyName.parse("uuid-1.store.shop")
StreamOf = Callable[..., StreamStatus]


@pytest.fixture
def entry(now: datetime) -> LedgerEntry:
    """Return a certificate that was issued yesterday, for two days."""
    return LedgerEntry.issued("ab", NAME, now - timedelta(days=1), now + timedelta(days=1))


def _standing(state: ProxyState, since: datetime, *, known: bool = True) -> ProxyStatus:
    return ProxyStatus(NAME, state, "", since, known)


def test_a_proxy_that_never_came(entry: LedgerEntry, now: datetime) -> None:
    """It may have had no chance to."""
    standing = _standing(ProxyState.EXPECTED, now)
    assert why(standing, ProxyEvidence(entry=entry), now) == "never connected"
    assert why(standing, ProxyEvidence(), now) == "no certificate was issued"
    came = replace(entry, claimed_at=now - timedelta(hours=1))
    assert why(standing, ProxyEvidence(entry=came), now) == "not connected since the control plane started"
    assert why(standing, ProxyEvidence(entry=came, waits_for="x"), now).endswith(
        "started; not admitted yet: x"
    )
    assert why(standing, ProxyEvidence(entry=replace(entry, revoked_at=now)), now) == "certificate revoked"
    assert why(standing, ProxyEvidence(entry=replace(entry, not_after=now)), now + timedelta(1)) == (
        "certificate expired"
    )


def test_a_proxy_that_went(entry: LedgerEntry, now: datetime) -> None:
    """Since when, and whether it can come again."""
    standing = _standing(ProxyState.DISCONNECTED, now - timedelta(minutes=5))
    assert why(standing, ProxyEvidence(entry=entry), now) == "disconnected 5 min ago"
    revoked = ProxyEvidence(entry=replace(entry, revoked_at=now))
    assert why(standing, revoked, now) == "certificate revoked; disconnected 5 min ago"
    gone = replace(standing, state=ProxyState.ENDED, known=False)
    assert why(gone, ProxyEvidence(entry=entry), now) == "disconnected 5 min ago, and its workload is gone"
    assert why(standing, ProxyEvidence(entry=entry, unreceived="too large"), now) == (
        "disconnected 5 min ago; too large"
    )


@pytest.mark.parametrize(
    ("state", "minutes", "expected"),
    [
        (ProxyState.DISCONNECTED, 5, "dead: disconnected 5 min ago; ejected by {}"),
        (ProxyState.DISCONNECTED, 1, "disconnected 1 min ago; ejected by {}"),
        (ProxyState.EXPECTED, 5, "dead: not connected since the control plane started; ejected by {}"),
        (ProxyState.CONNECTED, 5, "ejected by {}"),
        (ProxyState.ENDED, 5, "disconnected 5 min ago, and its workload is gone; ejected by {}"),
    ],
)
def test_a_proxy_that_callers_have_ejected(
    entry: LedgerEntry, stream_of: StreamOf, now: datetime, state: ProxyState, minutes: int, expected: str
) -> None:
    """It is said of whom; who is gone for longer than is bearable as well is dead, and neither alone."""
    by = tuple(ProxyName.parse(f"{each}.buyer.shop") for each in ("ann", "bob", "cyd"))
    streams = (stream_of(1, (SyncState.SYNCED, None)),) if state is ProxyState.CONNECTED else ()
    entry = replace(entry, claimed_at=now - timedelta(hours=1))
    standing = _standing(state, now - timedelta(minutes=minutes))
    for count, names in ((1, "ann.buyer.shop"), (3, "ann.buyer.shop, bob.buyer.shop and 1 more")):
        known = ProxyEvidence(streams, entry, ejected_by=by[:count], dead_after=timedelta(minutes=1))
        assert why(standing, known, now) == expected.format(names)
        assert is_dead(standing, known, now) == expected.startswith("dead")
    assert not is_dead(standing, ProxyEvidence(streams, entry, dead_after=timedelta(0)), now)


def test_a_proxy_that_is_here_and_cannot_be_served(stream_of: StreamOf, now: datetime) -> None:
    """Its workload is not known, its group failed, or neither."""
    streams = (stream_of(1, served=False),)
    standing = _standing(ProxyState.CONNECTED, now)
    assert why(replace(standing, known=False), ProxyEvidence(streams), now) == "held: workload unknown"
    assert (
        why(standing, ProxyEvidence(streams, failure="ValueError: x"), now) == "group failed: ValueError: x"
    )
    assert why(standing, ProxyEvidence(streams), now) == "held: its configuration is not published yet"


def test_a_workload_that_gets_no_traffic_yet(entry: LedgerEntry, stream_of: StreamOf, now: datetime) -> None:
    """It is said beside whatever else holds; of one that never came that says it all."""
    here = _standing(ProxyState.CONNECTED, now)
    for streams, first in (
        ((stream_of(1, (SyncState.SYNCED, None)),), ""),
        ((stream_of(1, (SyncState.PENDING, None)),), "cluster pending for 0 s; "),
    ):
        known = ProxyEvidence(streams, entry, waits_for="its sidecar has not done it")
        assert why(here, known, now) == f"{first}not admitted yet: its sidecar has not done it"
    known = ProxyEvidence(entry=entry, waits_for="x")
    assert (
        why(_standing(ProxyState.DISCONNECTED, now), known, now)
        == "disconnected 0 s ago; not admitted yet: x"
    )
    assert why(_standing(ProxyState.EXPECTED, now), known, now) == "never connected"


def test_a_proxy_that_is_served_and_not_in_step(stream_of: StreamOf, now: datetime) -> None:
    """What it rejected with the objects behind it, its failed group, what it has not answered."""
    standing = _standing(ProxyState.CONNECTED, now)
    rejected = (stream_of(1, (SyncState.REJECTED, Rejection(3, "no"))),)
    assert why(standing, ProxyEvidence(rejected), now) == "cluster rejected: a"
    known = ProxyEvidence(rejected, refusal=lambda _, name: f"no: Service shop/{name}")
    assert why(standing, known, now) == "cluster rejected: no: Service shop/a"
    goes_on = ProxyEvidence(
        (stream_of(1, (SyncState.SYNCED, None)),), rejected=((LISTENER, ResourceName("in")),)
    )
    assert why(standing, goes_on, now) == "listener rejected: in"
    waiting = (stream_of(1, (SyncState.PENDING, None)),)
    later = now + timedelta(seconds=3)
    assert why(standing, ProxyEvidence(waiting), later) == "cluster pending for 3 s"
    assert why(standing, ProxyEvidence(waiting, failure="x"), later) == "group failed: x"
    assert why(standing, ProxyEvidence(waiting, unreceived="too large"), later) == "too large"
    asked = replace(stream_of(1, (SyncState.ASKED, None)), variant=Variant.SOTW)
    assert why(standing, ProxyEvidence((asked,)), now) == "requested clusters that do not exist"


def test_a_proxy_in_step_is_not_behind(stream_of: StreamOf, now: datetime) -> None:
    """Nothing is said."""
    known = ProxyEvidence((stream_of(1, (SyncState.SYNCED, None)),))
    assert why(_standing(ProxyState.CONNECTED, now), known, now) == ""


def test_the_longest_wait_of_a_type_counts(stream_of: StreamOf, now: datetime) -> None:
    """Over all streams, for those that wait."""
    streams = (stream_of(1, (SyncState.PENDING, None)), stream_of(2, (SyncState.SYNCED, None)))
    assert pending(streams, now + timedelta(seconds=2)) == {"cluster": 2.0}


def test_the_newest_certificate_of_a_proxy_counts(entry: LedgerEntry, now: datetime) -> None:
    """In whatever order the ledger has them."""
    newer: Any = replace(entry, serial="cd", issued_at=now)
    assert newest([newer, entry], now) == {str(NAME): newer}


def test_a_proxy_goes_by_the_certificate_that_it_has_used_and_is_in_force(
    entry: LedgerEntry, now: datetime
) -> None:
    """One that was revoked is nobody's trouble while another is in force; one that was renewed is to come."""
    hour = timedelta(hours=1)
    first = replace(entry, issued_at=now - 3 * hour, claimed_at=now - 2 * hour, not_after=now + 9 * hour)
    revoked = replace(first, serial="cd", issued_at=now - hour, revoked_at=now)
    unused = replace(first, serial="ef", issued_at=now, claimed_at=None)
    assert newest([unused, revoked, first], now) == {str(NAME): first}
    assert newest([revoked, unused], now) == {str(NAME): unused}
    assert newest([revoked], now) == {str(NAME): revoked}


def test_a_certificate_that_was_not_used_in_time_is_said(entry: LedgerEntry, now: datetime) -> None:
    """It is refused, as a revoked one is."""
    late = replace(entry, claimed_at=None, claim_by=now, not_after=now + timedelta(1))
    standing, known = _standing(ProxyState.EXPECTED, now), ProxyEvidence(entry=late)
    assert why(standing, known, now + timedelta(hours=1)) == "certificate not used in time"


def test_lengths_of_time_have_one_unit() -> None:
    """The greatest; a clock that was set back is no reason for a negative one."""
    seconds = (-5, 3, 300, 7200, 400_000)
    shown = [duration(timedelta(seconds=each)) for each in seconds]
    assert shown == ["0 s", "3 s", "5 min", "2 h", "4 d"]
