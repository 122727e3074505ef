"""What is to be done where objects declare which roots there are: which step, and which is held back. Pure.

They say the end, and the stages lead there as everybody follows (certs.roots.rotation): a root that is
declared beside the one that signs is trusted first, signs once the other does no more, and the other is
trusted until nobody declares it.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from certs.roots.rotation import Fingerprint, Rotation, Stage


@dataclass(frozen=True, slots=True)
class DeclaredRoot:
    """A root by the `name` of its Secret, with its fingerprint, None where it is yet to be made.

    `signs` says whether it may; otherwise it is only to be trusted.
    """

    name: str
    fingerprint: Fingerprint | None
    signs: bool


class ChangeAction(enum.Enum):
    """What to do with a change under way: ABORT before the other root signs, TURN the two once it does."""

    ABORT = enum.auto()
    TURN = enum.auto()


Declared = Sequence[DeclaredRoot]
"""The roots that are in use, the oldest first."""


def next_act(
    rotation: Rotation | None, signer: Fingerprint, declared: Declared
) -> ChangeAction | DeclaredRoot | None:
    """Return what is to be done now: begin a change to a root, or an act; None for nothing.

    Nothing is done where no root may sign: who signs goes on.
    """
    if declared and not any(root.signs for root in declared):
        return None
    if rotation is None:
        return _begun(signer, declared)
    match rotation.stage:
        case Stage.TRUSTING if not _holds(declared, rotation.other):
            return ChangeAction.ABORT
        case Stage.REPLACING if _signs(declared, rotation.other) and not _signs(declared, rotation.signer):
            return ChangeAction.TURN
        case _:
            return None


def held(rotation: Rotation, declared: Declared) -> str:
    """Return why the next stage is not wanted yet, as a sentence's end; empty where it is."""
    if declared and not any(root.signs for root in declared):
        return "none of them is active, so that nobody would sign"
    match rotation.stage:
        case Stage.TRUSTING if _signs(declared, rotation.signer):
            return "that of the root which signs is active: it signs until it is passive or gone"
        case Stage.TRUSTING if not _signs(declared, rotation.other):
            return "that of the root which is trusted is not active"
        case Stage.REPLACING if _holds(declared, rotation.other):
            return "that of the former root is there: it is trusted until that is inactive or gone"
        case _:
            return ""


def state_of(root: Fingerprint | None, rotation: Rotation | None, signer: Fingerprint) -> str:
    """Return the state of a root in Open Service Mesh's words."""
    if rotation is None or root not in (rotation.signer, rotation.other):
        return "active" if root == signer else "inactive"
    is_signer = root == rotation.signer
    match rotation.stage:
        case Stage.TRUSTING:
            return "active" if is_signer else "validatingRollout"
        case Stage.REPLACING:
            return "issuingRollout" if is_signer else "issuingRollback"
        case Stage.RETIRING:
            return "active" if is_signer else "validatingRollback"


def _begun(signer: Fingerprint, declared: Declared) -> DeclaredRoot | None:
    """Return the root that another than the signer's is to be: one that signs, if the signer may not."""
    others = [root for root in declared if root.fingerprint != signer]
    if not _signs(declared, signer):
        others = [root for root in others if root.signs]
    return next(iter(others), None)


def _signs(declared: Declared, fingerprint: Fingerprint) -> bool:
    return any(root.signs for root in declared if root.fingerprint == fingerprint)


def _holds(declared: Declared, fingerprint: Fingerprint) -> bool:
    return any(root.fingerprint == fingerprint for root in declared)
