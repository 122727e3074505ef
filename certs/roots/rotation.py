"""A change of the root as a value: who signs, who else is trusted, and what comes next.

    TRUSTING    the other root is to be trusted by all; nothing stands below it yet
    REPLACING   it signs: the two have changed places, and what stands below the other one is replaced
    RETIRING    the other one is trusted no longer

A step is taken once nobody holds it back (certs.roots.evidence). Aborting goes the same way backwards, and
so is a change of its own: at any point each certificate in force stands below a root that all who look at
it trust.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, NewType

from certs.errors import RequestError

Fingerprint = NewType("Fingerprint", str)
"""What tells a root's key from others': `Root.fingerprint`."""

_NOBODY: Final[Mapping[str, datetime]] = MappingProxyType({})


class Stage(enum.StrEnum):
    """How far a change has come; see the module."""

    TRUSTING = "trusting"
    REPLACING = "replacing"
    RETIRING = "retiring"

    @property
    def number(self) -> int:
        """Return which it is, from 1."""
        return tuple(Stage).index(self) + 1


@dataclass(frozen=True, slots=True)
class Rotation:
    """A change of the root that is under way; times are whole seconds in UTC.

    `signer` signs now, whatever the stage. `since` is when the stage began, `began` when all of it did.
    `given_up` are proxies, by name, which are waited for no longer, and since when.
    """

    stage: Stage
    signer: Fingerprint
    other: Fingerprint
    began: datetime
    since: datetime
    aborted: bool = False
    given_up: Mapping[str, datetime] = field(default_factory=lambda: _NOBODY)

    @property
    def trusted(self) -> tuple[Fingerprint, ...]:
        """Return the roots that are to be trusted now, who signs first."""
        return (self.signer,) if self.stage is Stage.RETIRING else (self.signer, self.other)

    @property
    def origin(self) -> Fingerprint:
        """Return the root that signed before all of it began."""
        is_first = self.stage is Stage.TRUSTING
        return self.signer if is_first != self.aborted else self.other

    @property
    def leaving(self) -> Fingerprint:
        """Return the trusted root that gives way next, if any does: what may be of either counts as its."""
        return self.other if self.stage is Stage.REPLACING else self.signer

    @property
    def new(self) -> Fingerprint:
        """Return the root that there will be at the end."""
        return self.other if self.stage is Stage.TRUSTING else self.signer


def begun(signer: Fingerprint, new: Fingerprint, now: datetime) -> Rotation:
    """Return the change from a root that signs to a new one."""
    second = now.replace(microsecond=0)
    return Rotation(Stage.TRUSTING, signer, new, second, second)


def advanced(rotation: Rotation, now: datetime) -> Rotation | None:
    """Return a change one step on; None where that was the last one, and the other root can be removed."""
    match rotation.stage:
        case Stage.TRUSTING:
            swapped = replace(rotation, signer=rotation.other, other=rotation.signer)
            return _at(swapped, Stage.REPLACING, now)
        case Stage.REPLACING:
            return _at(rotation, Stage.RETIRING, now)
        case Stage.RETIRING:
            return None


def aborted(rotation: Rotation, now: datetime) -> Rotation:
    """Return the change that takes this one back; raise RequestError if it is being taken back already.

    Who has stopped to trust the other root must learn it again before it signs: that is TRUSTING again.
    """
    if rotation.aborted:
        raise RequestError("the rotation is being aborted already")
    back = replace(rotation, aborted=True)
    match rotation.stage:
        case Stage.TRUSTING:
            return _at(back, Stage.RETIRING, now)
        case Stage.REPLACING:
            return _at(replace(back, signer=rotation.other, other=rotation.signer), Stage.REPLACING, now)
        case Stage.RETIRING:
            return _at(back, Stage.TRUSTING, now)


def turned(rotation: Rotation, now: datetime) -> Rotation:
    """Return the change with the other root signing again, as often as is wanted; both are trusted.

    Raises RequestError in a stage in which not all are known to trust both.
    """
    if rotation.stage is not Stage.REPLACING:
        raise RequestError(f"the roots cannot change places while the change is {rotation.stage}")
    other = replace(rotation, signer=rotation.other, other=rotation.signer, aborted=not rotation.aborted)
    return _at(other, Stage.REPLACING, now)


def without(rotation: Rotation, proxies: Iterable[str], now: datetime) -> Rotation:
    """Return a change that no longer waits for these proxies."""
    second = now.replace(microsecond=0)
    given_up = {**dict.fromkeys(proxies, second), **rotation.given_up}
    return replace(rotation, given_up=MappingProxyType(dict(sorted(given_up.items()))))


def _at(rotation: Rotation, stage: Stage, now: datetime) -> Rotation:
    return replace(rotation, stage=stage, since=now.replace(microsecond=0))
