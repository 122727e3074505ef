"""Participants of the mesh: connected proxies with a valid certificate and a known workload.

A participant is in all of three sets: issued, connected and discovered. For every other proxy the missing
sets are named. These are pure functions; admission to traffic, which outlasts a connection, is in
`delivery.proxies.readiness`.
"""

import enum
import itertools
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from certs.ledger.entry import LedgerEntry, LedgerState
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName


class Lack(enum.StrEnum):
    """Reason why a proxy is not a participant, in this order; at most one reason for each of the three sets.

    Reasons for a certificate: none was ever issued, or the newest one is revoked, was not claimed in time, or
    has expired.
    """

    CERTIFICATE = "no-certificate"
    REVOKED = "certificate-revoked"
    UNCLAIMED = "certificate-unclaimed-too-long"
    EXPIRED = "certificate-expired"
    NEVER_CONNECTED = "never-connected"
    CONNECTION = "not-connected"
    WORKLOAD = "no-workload"


@dataclass(frozen=True, slots=True)
class Participation:
    """Participation of a proxy, or the reasons against it (`lacks`).

    `entry` is its newest certificate, preferably one in force. For example, a connected proxy whose Pod was
    deleted lacks WORKLOAD.
    """

    name: ProxyName
    lacks: tuple[Lack, ...] = ()
    entry: LedgerEntry | None = None

    @property
    def takes_part(self) -> bool:
        """Return whether the proxy takes part in the mesh: no requirement is missing (`lacks` is empty)."""
        return not self.lacks


def participants(
    entries: Iterable[LedgerEntry],
    connected: AbstractSet[ProxyName],
    discovered: AbstractSet[ProxyName],
    now: datetime,
) -> tuple[Participation, ...]:
    """Return the participation of every proxy in the ledger, connected or discovered, sorted by name."""
    ordered = sorted(entries, key=lambda entry: (entry.common_name, entry.issued_at, entry.serial))
    issued = {
        ProxyName.parse(name): tuple(result)
        for name, result in itertools.groupby(ordered, key=lambda entry: entry.common_name)
    }
    return tuple(
        _participation(name, issued.get(name, ()), name in connected, name in discovered, now)
        for name in sorted(issued.keys() | connected | discovered)
    )


def of_statuses(
    entries: Iterable[LedgerEntry], statuses: Iterable[ProxyStatus], now: datetime
) -> tuple[Participation, ...]:
    """Return the participation of proxies, given the ledger and the status of each proxy."""
    standing = tuple(statuses)
    connected = {status.name for status in standing if status.state is ProxyState.CONNECTED}
    return participants(entries, connected, {status.name for status in standing if status.known}, now)


def _participation(
    name: ProxyName, entries: tuple[LedgerEntry, ...], connected: bool, discovered: bool, now: datetime
) -> Participation:
    in_force = [entry for entry in entries if entry.in_force(now)]
    newest = next(reversed(in_force or entries), None)
    lacks = []
    if newest is None:
        lacks.append(Lack.CERTIFICATE)
    elif not in_force:
        lacks.append(_refused(newest, now))
    if not connected:
        came = any(entry.claimed_at is not None for entry in entries)
        lacks.append(Lack.CONNECTION if came else Lack.NEVER_CONNECTED)
    if not discovered:
        lacks.append(Lack.WORKLOAD)
    return Participation(name, tuple(lacks), newest)


def _refused(entry: LedgerEntry, now: datetime) -> Lack:
    """Return the reason why a proxy certificate is not in force: revoked, expired, or not used in time."""
    if entry.state is LedgerState.REVOKED:
        return Lack.REVOKED
    return Lack.EXPIRED if now > entry.not_after else Lack.UNCLAIMED
