"""Who takes part in the mesh: proxies with a certificate in force that are connected and have a workload.

issued ∩ connected ∩ discovered, as a value: whoever is in one of the three and not in all is no participant,
and what it lacks is said. A decision about values; who is admitted to traffic is another question, which is
remembered when a proxy is away (delivery.proxies.readiness).
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
    """What keeps a proxy from taking part; of each of the three one at most, in this order.

    Of its certificates: it never had one, or its newest is revoked, was not claimed in time, or has expired.
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
    """How a proxy takes part, or what it `lacks`; `entry` is its newest certificate, in force if any is."""

    name: ProxyName
    lacks: tuple[Lack, ...] = ()
    entry: LedgerEntry | None = None

    @property
    def takes_part(self) -> bool:
        """Say whether it is a participant."""
        return not self.lacks


def participants(
    entries: Iterable[LedgerEntry],
    connected: AbstractSet[ProxyName],
    discovered: AbstractSet[ProxyName],
    now: datetime,
) -> tuple[Participation, ...]:
    """Return of each proxy that any of the three knows how it takes part, sorted by name."""
    ordered = sorted(entries, key=lambda each: (each.common_name, each.issued_at, each.serial))
    issued = {
        ProxyName.parse(name): tuple(found)
        for name, found in itertools.groupby(ordered, key=lambda each: each.common_name)
    }
    return tuple(
        _participation(name, issued.get(name, ()), name in connected, name in discovered, now)
        for name in sorted(issued.keys() | connected | discovered)
    )


def of_statuses(
    entries: Iterable[LedgerEntry], statuses: Iterable[ProxyStatus], now: datetime
) -> tuple[Participation, ...]:
    """Return the same of proxies as they stand, of which a server knows who is here and who should be."""
    standing = tuple(statuses)
    connected = {each.name for each in standing if each.state is ProxyState.CONNECTED}
    return participants(entries, connected, {each.name for each in standing if each.known}, now)


def _participation(
    name: ProxyName, entries: tuple[LedgerEntry, ...], connected: bool, discovered: bool, now: datetime
) -> Participation:
    in_force = [each for each in entries if each.in_force(now)]
    newest = next(reversed(in_force or entries), None)
    lacks = []
    if newest is None:
        lacks.append(Lack.CERTIFICATE)
    elif not in_force:
        lacks.append(_refused(newest, now))
    if not connected:
        came = any(each.claimed_at is not None for each in entries)
        lacks.append(Lack.CONNECTION if came else Lack.NEVER_CONNECTED)
    if not discovered:
        lacks.append(Lack.WORKLOAD)
    return Participation(name, tuple(lacks), newest)


def _refused(entry: LedgerEntry, now: datetime) -> Lack:
    """Return why a certificate that is not in force is not."""
    if entry.state is LedgerState.REVOKED:
        return Lack.REVOKED
    return Lack.EXPIRED if now > entry.not_after else Lack.UNCLAIMED
