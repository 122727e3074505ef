"""Tests of participants: compared with a definition by sets, and each lack by itself."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certs.ledger.entry import LedgerEntry
from meshwright.delivery.proxies.participants import Lack, of_statuses, participants
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAMES = [ProxyName.parse(f"{uuid}.shop.default") for uuid in "abcd"]
A = NAMES[0]

moments = st.integers(-3, 3).map(lambda hours: NOW + hours * HOUR)


@st.composite
def entries(draw: st.DrawFn) -> list[LedgerEntry]:
    """Return random certificates, some of them claimed, revoked, or with a time limit for the claim."""
    result = []
    for number in range(draw(st.integers(0, 8))):
        issued = LedgerEntry.issued(f"{number:x}", draw(st.sampled_from(NAMES)), draw(moments), draw(moments))
        claimed, revoked, claim_by = (draw(st.none() | moments) for _ in range(3))
        result.append(replace(issued, claimed_at=claimed, revoked_at=revoked, claim_by=claim_by))
    return result


@given(entries(), st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)))
def test_participants_are_the_intersection_of_three_sets(
    issued: list[LedgerEntry], connected: set[ProxyName], discovered: set[ProxyName]
) -> None:
    """Participants have a certificate in force, a connection and a workload; all other proxies have lacks.

    A certificate is in force if it is neither revoked nor expired, and is claimed or may still be.
    """
    in_force = {
        ProxyName.parse(entry.common_name)
        for entry in issued
        if entry.revoked_at is None
        and entry.not_after >= NOW
        and (entry.claimed_at is not None or entry.claim_by is None or entry.claim_by >= NOW)
    }
    participations = participants(issued, connected, discovered, NOW)
    assert {
        participation.name for participation in participations if participation.takes_part
    } == in_force & connected & discovered
    known = {ProxyName.parse(entry.common_name) for entry in issued} | connected | discovered
    assert [participation.name for participation in participations] == sorted(known)
    of_certificate = {Lack.CERTIFICATE, Lack.REVOKED, Lack.UNCLAIMED, Lack.EXPIRED}
    of_connection = {Lack.NEVER_CONNECTED, Lack.CONNECTION}
    for participation in participations:
        lacks = set(participation.lacks)
        assert bool(lacks & of_certificate) is (participation.name not in in_force)
        assert bool(lacks & of_connection) is (participation.name not in connected)
        assert (Lack.WORKLOAD in lacks) is (participation.name not in discovered)
        assert len(lacks) == len(participation.lacks) <= 3
    assert participants(reversed(issued), connected, discovered, NOW) == participations


ISSUED = LedgerEntry.issued("1", A, NOW - HOUR, NOW + HOUR)
CLAIMED = replace(ISSUED, claimed_at=NOW - HOUR)


@pytest.mark.parametrize(
    ("issued", "connected", "discovered", "lacks"),
    [
        ((ISSUED,), False, True, ["never-connected"]),
        ((CLAIMED,), False, True, ["not-connected"]),
        ((CLAIMED,), True, False, ["no-workload"]),
        ((CLAIMED,), True, True, []),
        ((), False, True, ["no-certificate", "never-connected"]),
        ((replace(CLAIMED, revoked_at=NOW),), False, True, ["certificate-revoked", "not-connected"]),
        ((replace(CLAIMED, not_after=NOW - HOUR),), True, True, ["certificate-expired"]),
        (
            (replace(ISSUED, claim_by=NOW - HOUR),),
            False,
            True,
            ["certificate-unclaimed-too-long", "never-connected"],
        ),
        # Another certificate is in force.
        ((replace(CLAIMED, revoked_at=NOW), replace(ISSUED, serial="2")), True, True, []),
    ],
)
def test_each_lack_of_a_proxy_is_named(
    issued: tuple[LedgerEntry, ...], connected: bool, discovered: bool, lacks: list[str]
) -> None:
    """Pages and the command line show these names."""
    (participation,) = participants(issued, {A} if connected else set(), {A} if discovered else set(), NOW)
    assert [lack.value for lack in participation.lacks] == lacks


def test_participants_follow_from_the_statuses_of_a_servers_proxies() -> None:
    """A status has the connection and the workload of a proxy; the ledger has its certificate."""
    statuses = [
        ProxyStatus(A, ProxyState.CONNECTED, "ipv4:1.2.3.4:5", NOW, True),
        ProxyStatus(NAMES[1], ProxyState.EXPECTED, "", NOW, True),
        ProxyStatus(NAMES[2], ProxyState.CONNECTED, "ipv4:1.2.3.4:6", NOW, False),
    ]
    participations = of_statuses((CLAIMED,), statuses, NOW)
    assert [(str(participation.name)[0], [*participation.lacks]) for participation in participations] == [
        ("a", []),
        ("b", [Lack.CERTIFICATE, Lack.NEVER_CONNECTED]),
        ("c", [Lack.CERTIFICATE, Lack.WORKLOAD]),
    ]
