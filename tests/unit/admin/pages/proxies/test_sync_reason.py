"""Tests of the reasons for which a proxy is not in sync."""

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
    """Return a certificate that was issued yesterday for two days."""
    return LedgerEntry.issued("ab", NAME, now - timedelta(days=1), now + timedelta(days=1))


def _standing(state: ProxyState, since: datetime, *, known: bool = True) -> ProxyStatus:
    return ProxyStatus(NAME, state, "", since, known)


def test_proxy_that_never_connected_has_a_reason_from_its_certificate(
    entry: LedgerEntry, now: datetime
) -> None:
    """The reason says whether a certificate was issued, used, revoked or has expired."""
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


def test_disconnected_proxy_shows_since_when_and_why(entry: LedgerEntry, now: datetime) -> None:
    """The reason gives the time since disconnection.

    A revoked certificate, a missing workload or a failed delivery is added.
    """
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
def test_ejected_proxy_is_dead_if_it_is_also_long_disconnected(
    entry: LedgerEntry, stream_of: StreamOf, now: datetime, state: ProxyState, minutes: int, expected: str
) -> None:
    """The reason names the callers that ejected the proxy.

    It is dead only if ejected and away for longer than the limit.
    """
    by = tuple(ProxyName.parse(f"{item}.buyer.shop") for item in ("ann", "bob", "cyd"))
    streams = (stream_of(1, (SyncState.SYNCED, None)),) if state is ProxyState.CONNECTED else ()
    entry = replace(entry, claimed_at=now - timedelta(hours=1))
    standing = _standing(state, now - timedelta(minutes=minutes))
    for count, names in ((1, "ann.buyer.shop"), (3, "ann.buyer.shop, bob.buyer.shop and 1 more")):
        known = ProxyEvidence(streams, entry, ejected_by=by[:count], dead_after=timedelta(minutes=1))
        assert why(standing, known, now) == expected.format(names)
        assert is_dead(standing, known, now) == expected.startswith("dead")
    assert not is_dead(standing, ProxyEvidence(streams, entry, dead_after=timedelta(0)), now)


def test_connected_proxy_whose_workload_was_removed_has_a_reason(stream_of: StreamOf, now: datetime) -> None:
    """The proxy, a sidecar or a gateway's, acknowledged everything before, and gets no changes any more."""
    streams = (stream_of(1, served=True),)
    standing = _standing(ProxyState.CONNECTED, now)
    gone = "its workload is gone, and it keeps its last configuration"
    assert why(replace(standing, known=False), ProxyEvidence(streams), now) == gone
    assert why(standing, ProxyEvidence(streams), now) == ""


def test_connected_proxy_that_is_not_served_has_a_reason(stream_of: StreamOf, now: datetime) -> None:
    """A held proxy has one of three reasons.

    Its workload is unknown, its group failed, or its configuration is not published yet.
    """
    streams = (stream_of(1, served=False),)
    standing = _standing(ProxyState.CONNECTED, now)
    assert why(replace(standing, known=False), ProxyEvidence(streams), now) == "held: workload unknown"
    assert (
        why(standing, ProxyEvidence(streams, failure="ValueError: x"), now) == "group failed: ValueError: x"
    )
    assert why(standing, ProxyEvidence(streams), now) == "held: its configuration is not published yet"


def test_missing_admission_is_added_to_the_other_reasons(
    entry: LedgerEntry, stream_of: StreamOf, now: datetime
) -> None:
    """A missing admission is added to every other reason, except "never connected", which implies it."""
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


def test_served_proxy_that_is_not_in_sync_has_a_reason(stream_of: StreamOf, now: datetime) -> None:
    """The reason is a rejection with its objects, a failed group, or a pending or failed delivery.

    A state-of-the-world client can also wait for resources that do not exist.
    """
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


def test_proxy_in_sync_has_no_reason(stream_of: StreamOf, now: datetime) -> None:
    """A proxy in sync has an empty reason."""
    known = ProxyEvidence((stream_of(1, (SyncState.SYNCED, None)),))
    assert why(_standing(ProxyState.CONNECTED, now), known, now) == ""


def test_longest_wait_over_all_streams_is_shown(stream_of: StreamOf, now: datetime) -> None:
    """The pending time of a type is the longest over all streams that wait."""
    streams = (stream_of(1, (SyncState.PENDING, None)), stream_of(2, (SyncState.SYNCED, None)))
    assert pending(streams, now + timedelta(seconds=2)) == {"cluster": 2.0}


def test_newest_certificate_counts_in_any_ledger_order(entry: LedgerEntry, now: datetime) -> None:
    """The newest certificate is chosen from a ledger in any order."""
    newer: Any = replace(entry, serial="cd", issued_at=now)
    assert newest([newer, entry], now) == {str(NAME): newer}


def test_valid_used_certificate_is_preferred(entry: LedgerEntry, now: datetime) -> None:
    """A used and valid certificate comes before a revoked one and before a newer unused one.

    A renewal leaves such an unused certificate.
    """
    hour = timedelta(hours=1)
    first = replace(entry, issued_at=now - 3 * hour, claimed_at=now - 2 * hour, not_after=now + 9 * hour)
    revoked = replace(first, serial="cd", issued_at=now - hour, revoked_at=now)
    unused = replace(first, serial="ef", issued_at=now, claimed_at=None)
    assert newest([unused, revoked, first], now) == {str(NAME): first}
    assert newest([revoked, unused], now) == {str(NAME): unused}
    assert newest([revoked], now) == {str(NAME): revoked}


def test_certificate_that_was_not_used_in_time_is_the_reason(entry: LedgerEntry, now: datetime) -> None:
    """A certificate that was not used before its deadline is the reason, because the server refuses it."""
    late = replace(entry, claimed_at=None, claim_by=now, not_after=now + timedelta(1))
    standing, known = _standing(ProxyState.EXPECTED, now), ProxyEvidence(entry=late)
    assert why(standing, known, now + timedelta(hours=1)) == "certificate not used in time"


def test_durations_are_shown_in_one_unit() -> None:
    """A duration is shown in its largest unit; a negative one, after the clock was set back, is 0 s."""
    seconds = (-5, 3, 300, 7200, 400_000)
    shown = [duration(timedelta(seconds=second)) for second in seconds]
    assert shown == ["0 s", "3 s", "5 min", "2 h", "4 d"]
