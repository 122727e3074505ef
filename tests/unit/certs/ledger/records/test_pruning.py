"""Certificates that the shared ledger may forget: nothing that still decides about a proxy."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certs.ledger.entry import LedgerEntry
from certs.ledger.progress import Progress, progress
from certs.ledger.records.pruning import LONGEST_TOKEN, is_prunable, kept
from meshwright.enrolment.proofs.kubernetes import KIND
from meshwright.enrolment.readmission import revocation
from meshwright.enrolment.tokens import MOST_VALID, PROOF_KIND
from meshwright.mesh.identity import ProxyName

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NAME = ProxyName.parse("u1.cart.shop")
TOKEN, OTHER_TOKEN = f"{PROOF_KIND} 0123456789ab", f"{PROOF_KIND} ba9876543210"
POD = f"{KIND} Pod shop/cart-1 (8a)"


def certificate(serial: str, day: float = 0.0, *, days: float = 90.0, joined_by: str = "") -> LedgerEntry:
    """Return a certificate of the proxy that was issued at a day, for so many days."""
    at = BEGIN + day * DAY
    return LedgerEntry.issued(serial, NAME, at, at + days * DAY, joined_by=joined_by)


def used(entry: LedgerEntry, *, ready: bool = True) -> LedgerEntry:
    """Return a certificate with which the proxy connected, and became ready."""
    at = entry.issued_at
    return replace(entry, claimed_at=at, admitted_at=at if ready else None)


def revoked(entry: LedgerEntry, day: float) -> LedgerEntry:
    """Return a certificate that was revoked at a day."""
    return replace(entry, revoked_at=BEGIN + day * DAY)


def test_certificate_stays_until_a_day_after_its_end() -> None:
    """A certificate of a proxy that is gone vanishes a day after its end, not earlier."""
    entry = used(certificate("aa"))
    days = (0, 89, 90, 91, 91.1)
    assert [is_prunable((entry,), BEGIN + day * DAY, has_workload=False) for day in days] == [
        False,
        False,
        False,
        False,
        True,
    ]


def test_record_without_certificates_is_prunable() -> None:
    """A record without certificates may vanish, whether the workload is known or not."""
    assert is_prunable((), BEGIN)
    assert is_prunable((), BEGIN, has_workload=False)


def test_renewed_proxy_stays_ready() -> None:
    """Only the first certificate has the time of the first ACK, so it stays with the one in force."""
    first, second, third = used(certificate("aa")), certificate("bb", 45), certificate("cc", 90)
    renewed = (
        first,
        replace(second, claimed_at=second.issued_at),
        replace(third, claimed_at=third.issued_at),
    )
    left = kept(renewed, BEGIN + 150 * DAY)
    assert left == (renewed[0], renewed[2])
    assert progress(left) is Progress.READY


def test_ready_certificate_in_force_needs_no_other() -> None:
    """Ended certificates vanish if the one in force tells as much about the proxy."""
    renewed = (used(certificate("aa")), used(certificate("bb", 60)))
    assert kept(renewed, BEGIN + 100 * DAY) == renewed[1:]


def test_silent_machine_stays_ready_as_long_as_the_mesh_has_it() -> None:
    """A declared machine whose certificates have ended keeps one of them, and forgets it when it is gone."""
    ended = (used(certificate("aa")), replace(certificate("bb", 45), claimed_at=BEGIN + 45 * DAY))
    now = BEGIN + 500 * DAY
    assert kept(ended, now) == ended[:1]
    assert kept(ended, now, has_workload=False) == ()


@pytest.mark.parametrize(
    ("joined_by", "has_workload", "day", "stays"),
    [
        ("", False, 377, True),
        ("", False, 378, False),
        (TOKEN, False, 377, True),
        (TOKEN, False, 378, False),
        (POD, True, 5000, True),
        (POD, False, 377, True),
        (POD, False, 378, False),
        ("cloud i-0123", False, 5000, True),
    ],
)
def test_revoked_certificate_stays_as_long_as_a_proof_may_be_good(
    joined_by: str, has_workload: bool, day: float, stays: bool
) -> None:
    """A certificate revoked at day 10 stays for the longest token, for its Pod too, or for ever."""
    entry = revoked(certificate("aa", joined_by=joined_by), 10)
    result = kept((entry,), BEGIN + day * DAY, has_workload=has_workload)
    assert result == ((entry,) if stays else ())


@pytest.mark.parametrize(
    ("joined_by", "gone_since", "stays"),
    [
        (POD, 5.0, True),
        (POD, 3.9, False),
        (POD, None, True),
        (TOKEN, 3.9, True),
        ("", 3.9, True),
    ],
)
def test_certificate_of_a_pod_ends_with_the_pod(
    joined_by: str, gone_since: float | None, stays: bool
) -> None:
    """A Pod that has been gone for a day never comes back; a machine may, as long as it has a certificate."""
    entry = used(certificate("aa", joined_by=joined_by))
    gone = None if gone_since is None else BEGIN + gone_since * DAY
    now = BEGIN + 5 * DAY
    assert kept((entry,), now, has_workload=False, gone_since=gone) == ((entry,) if stays else ())
    assert kept((entry,), now, has_workload=True, gone_since=gone) == (entry,)
    late = used(certificate("bb", 4.5, joined_by=joined_by))
    assert kept((late,), now, has_workload=False, gone_since=gone) == (late,)


@pytest.mark.parametrize(("days", "day", "stays"), [(90, 376, True), (90, 378, False), (700, 378, True)])
def test_revoked_certificate_of_a_pod_that_has_ended_stays_while_it_is_good(
    days: float, day: float, stays: bool
) -> None:
    """Somebody may have copied the key of the Pod, and the certificate is refused only while it is known."""
    entry = revoked(certificate("aa", days=days, joined_by=POD), 10)
    result = kept((entry,), BEGIN + day * DAY, has_workload=False, gone_since=BEGIN + 11 * DAY)
    assert result == ((entry,) if stays else ())


def test_mesh_with_installed_proofs_keeps_each_revocation() -> None:
    """A proof of an installed kind may be older than any token, so that no revocation is forgotten."""
    entry = revoked(certificate("aa"), 10)
    now = BEGIN + 5000 * DAY
    assert is_prunable((entry,), now, has_workload=False)
    assert not is_prunable((entry,), now, has_workload=False, keeps_revoked=True)


def test_longest_token_is_that_of_enrolment() -> None:
    """The pruning assumes the validity that join tokens may have."""
    assert LONGEST_TOKEN == MOST_VALID


DAYS = st.floats(0, 1000).map(lambda day: round(day, 1))
PROOFS = st.sampled_from(("", TOKEN, OTHER_TOKEN, POD))


@st.composite
def histories(draw: st.DrawFn) -> tuple[LedgerEntry, ...]:
    """Draw certificates of one proxy with any stamps."""
    entries = []
    for number in range(draw(st.integers(0, 5))):
        entry = certificate(f"{number:02x}", draw(DAYS), days=draw(st.sampled_from((1, 30, 90))))
        entry = replace(entry, joined_by=draw(PROOFS))
        if draw(st.booleans()):
            entry = used(entry, ready=draw(st.booleans()))
        if draw(st.booleans()):
            entry = replace(entry, revoked_at=entry.issued_at + draw(DAYS) * DAY)
        entries.append(entry)
    return tuple(entries)


@given(entries=histories(), day=st.floats(0, 2500), has_workload=st.booleans())
def test_what_is_forgotten_decides_nothing(
    entries: tuple[LedgerEntry, ...], day: float, has_workload: bool
) -> None:
    """Certificates in force stay, progress stays the same, and a second pruning finds nothing."""
    now = BEGIN + day * DAY
    left = kept(entries, now, has_workload=has_workload)
    assert {entry.serial for entry in entries if now <= entry.not_after} <= {entry.serial for entry in left}
    assert set(left) <= set(entries)
    if left or has_workload:
        assert progress(left) is progress(entries)
    assert kept(left, now, has_workload=has_workload) == left


@given(entries=histories(), day=st.floats(0, 2500), gone=st.floats(0, 2500))
def test_certificate_of_a_machine_in_force_stays(
    entries: tuple[LedgerEntry, ...], day: float, gone: float
) -> None:
    """However long its workload has been gone, a machine is not refused before its certificate has ended."""
    now = BEGIN + day * DAY
    left = kept(entries, now, has_workload=False, gone_since=BEGIN + gone * DAY)
    machines = {entry for entry in entries if not entry.joined_by.startswith(KIND)}
    assert {entry for entry in machines if now <= entry.not_after} <= set(left)
    if left:
        assert progress(left) is progress(entries)


@given(entries=histories(), day=st.floats(0, 2500), made=st.floats(0, 366), proof=PROOFS)
def test_no_machine_joins_again_that_was_refused(
    entries: tuple[LedgerEntry, ...], day: float, made: float, proof: str
) -> None:
    """A join token or a living Pod that the ledger refused is refused after the pruning too."""
    now, is_token = BEGIN + day * DAY, proof.startswith(PROOF_KIND)
    since = now - made * DAY if is_token else None
    # A machine joined by a token after the token was made.
    assume(not is_token or all(e.issued_at >= now - made * DAY for e in entries if e.joined_by == proof))
    known = tuple(entry for entry in entries if entry.issued_at <= now)
    known = tuple(
        replace(entry, revoked_at=None) if entry.revoked_at is not None and entry.revoked_at > now else entry
        for entry in known
    )
    left = kept(known, now, has_workload=not is_token)
    before, after = (revocation(item, proof, since, "") for item in (known, left))
    assert (after is None) == (before is None)
