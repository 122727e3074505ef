"""Check whether the CA and the ledger of a state directory belong together, and the description of a loss.

A CA without its ledger refuses every proxy, and so does a ledger of another CA. The server must not start
silently in either state. A loss is identified by a serial, which an operator repeats to begin anew. The next
loss has another serial, so an option left in place is without effect a second time.
"""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from certs.ledger.mark import ENDING


class MissingState(enum.Enum):
    """The missing or wrong part of the state: the ledger, the CA, or both."""

    LEDGER = enum.auto()
    OTHER_LEDGER = enum.auto()
    DAMAGED_LEDGER = enum.auto()
    OLDER_LEDGER = enum.auto()
    AUTHORITY = enum.auto()
    OTHER_AUTHORITY = enum.auto()
    BOTH = enum.auto()


REBUILT: Final = frozenset(
    {MissingState.LEDGER, MissingState.OTHER_LEDGER, MissingState.DAMAGED_LEDGER, MissingState.OLDER_LEDGER}
)
"""Losses that can be repaired from proxies' certificates, because the signing CA is present."""


@dataclass(frozen=True, slots=True)
class StateContents:
    """The existing parts; certificates by serial, CAs by the fingerprint of the key.

    - `marked` is the first issued proxy certificate, as stored beside the CA; `known` is True if the ledger
      has this certificate.
    - `first` is the ledger's own first certificate, and `signed_by` the CA named in the ledger.
    - `shown` is the certificate of a server, as evidence of an earlier run.
    - The content of a `damaged` ledger is unknown.
    - `forgotten` is the number of written revocations missing in an older ledger put back.
    """

    authority: str | None = None
    marked: str | None = None
    ledger: bool = False
    known: bool = False
    first: str | None = None
    signed_by: str | None = None
    shown: str | None = None
    damaged: bool = False
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class Loss:
    """The missing or wrong part of the state, and the serial by which the operator confirms a remedy."""

    lost: MissingState
    serial: str
    forgotten: int = 0


def loss(state_contents: StateContents) -> Loss | None:
    """Return which of CA and ledger is missing or does not match the other one.

    The result is None if both match, or if no certificate has been issued yet.
    """
    if state_contents.authority is None:
        if state_contents.first is not None:
            return Loss(MissingState.AUTHORITY, state_contents.first)
        if state_contents.shown is not None and not state_contents.ledger:
            return Loss(MissingState.BOTH, state_contents.shown)
        return None
    if state_contents.damaged:
        serial = state_contents.marked or state_contents.shown
        return None if serial is None else Loss(MissingState.DAMAGED_LEDGER, serial)
    if state_contents.marked is not None and not state_contents.known:
        return Loss(
            MissingState.LEDGER if state_contents.first is None else MissingState.OTHER_LEDGER,
            state_contents.marked,
        )
    if state_contents.marked is None and state_contents.shown is not None and not state_contents.ledger:
        return Loss(MissingState.LEDGER, state_contents.shown)
    if state_contents.first is not None and state_contents.signed_by not in (None, state_contents.authority):
        return Loss(MissingState.OTHER_AUTHORITY, state_contents.first)
    if state_contents.forgotten and (serial := state_contents.first or state_contents.marked) is not None:
        return Loss(MissingState.OLDER_LEDGER, serial, state_contents.forgotten)
    return None


def sentence(lost: Loss, state: Path, ledger: Path) -> str:
    """Return a sentence for the operator about a missing CA or ledger, with every remedy."""
    authority = state / "ca"
    anew = f"--begin-anew {lost.serial} (then every proxy needs a new certificate)"
    rebuilt = f"rebuild it from the certificates of the connected proxies with --rebuild-ledger {lost.serial}"
    refused = "the server would refuse every proxy"
    match lost.lost:
        case MissingState.LEDGER:
            return (
                f"ledger {ledger} is missing or empty, but the CA in {authority} has "
                f"issued certificates, so {refused}; restore the ledger, {rebuilt}, or "
                f"start a new ledger with {anew}"
            )
        case MissingState.OTHER_LEDGER:
            return (
                f"ledger {ledger} does not belong to the CA in {authority}: the first proxy "
                f"certificate that the CA issued, {lost.serial}, is not in the ledger; "
                f"restore the right ledger, {rebuilt}, or start a new ledger with {anew}"
            )
        case MissingState.DAMAGED_LEDGER:
            return (
                f"ledger {ledger} is damaged or not a ledger, so {refused}; restore the "
                f"ledger from a backup, {rebuilt}, or start a new ledger with {anew}"
            )
        case MissingState.OLDER_LEDGER:
            many = "a revocation" if lost.forgotten == 1 else f"{lost.forgotten} revocations"
            return (
                f"ledger {ledger} was replaced by an older one: it lacks {many}, so the "
                "server would admit revoked proxies again; restore the newest ledger, "
                f"{rebuilt}, or, if the server may admit them, accept the older ledger by "
                f"removing {ledger}{ENDING}"
            )
        case MissingState.AUTHORITY:
            return (
                f"the CA in {authority} is missing, but ledger {ledger} has certificates of "
                f"this CA, so {refused}; restore ca.pem and ca.key, set authority_directory "
                f"if that CA signed them, or create a new CA with {anew}"
            )
        case MissingState.OTHER_AUTHORITY:
            return (
                f"the CA in {authority} did not issue the certificates in ledger "
                f"{ledger}, so {refused}; restore the right ca.pem and ca.key, or start a "
                f"new ledger with {anew}"
            )
        case MissingState.BOTH:
            return (
                f"the CA and the ledger are missing in {state}, but a server has run "
                f"there before, so {refused}; restore ca/ and {ledger.name}, or start "
                f"with new ones with {anew}"
            )
