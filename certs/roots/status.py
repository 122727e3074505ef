"""The status of a root change: which proxies and parts of the server hold back the next step. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from certs.errors import RequestError
from certs.ledger.contract import Ledger
from certs.roots.authority import ChangingAuthority
from certs.roots.evidence import BlockingPart, BlockReason, Holdout, Part, behind, holdouts
from certs.roots.proxy_evidence import RootAcknowledgements, evidence, facts
from certs.roots.rotation import Rotation
from certs.roots.server_report import NO_REPORTS, Reports, behind_elsewhere, known_to_all


@dataclass(frozen=True, slots=True)
class ChangeStatus:
    """Status of a change (None without a change), and the parties blocking the next step.

    `holdouts` are proxies, `behind` are parts of the server itself, and other servers of the mesh.
    `other_servers` are the names of all other servers that are here.
    """

    rotation: Rotation | None
    holdouts: tuple[Holdout, ...] = ()
    behind: tuple[BlockingPart, ...] = ()
    other_servers: tuple[str, ...] = ()

    @property
    def is_blocked(self) -> bool:
        """Return whether a proxy or a part of the server blocks the next step of the root rotation."""
        return bool(self.holdouts or self.behind)

    @property
    def is_server_behind(self) -> bool:
        """Return whether the server still shows or trusts roots not allowed in this stage of the rotation."""
        return any(blocking_part.part is Part.SERVER for blocking_part in self.behind)


def status_of(
    rotation: Rotation,
    ledger: Ledger,
    acknowledgements: RootAcknowledgements,
    authority: ChangingAuthority,
    undeclared: str,
    now: datetime,
    others: Reports = NO_REPORTS,
) -> ChangeStatus:
    """Return the status of a change.

    `undeclared` is the reason why objects do not request the next stage yet; empty if they do. `others` are
    the reports of the other servers of the mesh. Raises StateError if the ledger cannot be read.
    """
    elsewhere = tuple(behind_elsewhere(rotation, others, lambda serial: ledger.entry(serial) is not None))
    facts_of = known_to_all(rotation, facts(rotation, acknowledgements, authority), others)
    is_foreign = acknowledgements.taken is None
    held = holdouts(
        rotation, evidence(rotation, ledger.entries(), facts_of, authority, now, elsewhere=is_foreign)
    )
    objects = (BlockingPart(Part.OBJECTS, BlockReason.NOT_DECLARED, undeclared),) if undeclared else ()
    return ChangeStatus(
        rotation,
        held,
        (*behind(rotation, acknowledgements.ours), *elsewhere, *objects),
        tuple(sorted(others)),
    )


def given_up(
    status: ChangeStatus, names: Collection[str], older_than: timedelta | None, now: datetime
) -> tuple[str, ...]:
    """Return the names to give up, sorted: the given `names`, and proxies silent for `older_than`.

    The servers and the objects declaring roots cannot be given up. Raises RequestError for a name that does
    not block the step, because the name may be mistyped.
    """
    proxies = {str(holdout.proxy): holdout for holdout in status.holdouts}
    ours = [
        blocking_part.part.value
        for blocking_part in status.behind
        if blocking_part.part not in (Part.SERVER, Part.OTHER_SERVER, Part.OBJECTS)
    ]
    if wrong := sorted(set(names) - proxies.keys() - set(ours)):
        waited = ", ".join((*proxies, *ours)) or "no proxy"
        raise RequestError(f"{wrong[0][:200]} does not delay the rotation; the rotation waits for: {waited}")
    old = {
        name
        for name, proxy in proxies.items()
        if older_than is not None and now - proxy.last_contact >= older_than
    }
    return tuple(sorted({*names, *old}))
