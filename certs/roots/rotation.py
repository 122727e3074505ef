"""Change of the root as a value: the signing root, the other trusted root, and the next step.

    TRUSTING    everybody starts to trust the other root, before its first signature
    REPLACING   the roots have swapped: the other root signs, and certificates of the former are replaced
    RETIRING    everybody stops trusting the former root

A step is taken when all proxies and all parts of the server are ready (`certs.roots.evidence`). An abort
takes the same stages backwards and is a change of its own. At any time each certificate in force is signed by
a root trusted by all verifiers.
"""

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, NewType

from certs.errors import RequestError
from certs.state.json_fields import json_field, json_object, parse_time

Fingerprint = NewType("Fingerprint", str)
"""Identifier of a root's key: `Root.fingerprint`."""

_NOBODY: Final[Mapping[str, datetime]] = MappingProxyType({})


class Stage(enum.StrEnum):
    """Stage of a root rotation; see the module."""

    TRUSTING = "trusting"
    REPLACING = "replacing"
    RETIRING = "retiring"

    @property
    def number(self) -> int:
        """Return the number of the stage, from 1; for example 2 for REPLACING."""
        return tuple(Stage).index(self) + 1


@dataclass(frozen=True, slots=True)
class Rotation:
    """A change of the root under way; times are whole seconds in UTC.

    `signer` signs now, whatever the stage. `began` is the start of the change, `since` the start of the
    stage. `given_up` maps the names of given-up proxies to the time of the decision, for example
    `a1.cart.shop`.
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
        """Return the roots to trust now, the signer first."""
        return (self.signer,) if self.stage is Stage.RETIRING else (self.signer, self.other)

    @property
    def origin(self) -> Fingerprint:
        """Return the signing root before the change."""
        is_first = self.stage is Stage.TRUSTING
        return self.signer if is_first != self.aborted else self.other

    @property
    def leaving(self) -> Fingerprint:
        """Return the trusted root to be replaced next.

        Certificates of an uncertain root count as signed by this root.
        """
        return self.other if self.stage is Stage.REPLACING else self.signer

    @property
    def new(self) -> Fingerprint:
        """Return the signing root after the change."""
        return self.other if self.stage is Stage.TRUSTING else self.signer


def begun(signer: Fingerprint, new: Fingerprint, now: datetime) -> Rotation:
    """Return a new root rotation in its first stage, from the signing root to another one."""
    second = now.replace(microsecond=0)
    return Rotation(Stage.TRUSTING, signer, new, second, second)


def advanced(rotation: Rotation, now: datetime) -> Rotation | None:
    """Return the rotation in its next step; None after the last one.

    After the last step the root that does not sign can be removed.
    """
    match rotation.stage:
        case Stage.TRUSTING:
            swapped = replace(rotation, signer=rotation.other, other=rotation.signer)
            return _at(swapped, Stage.REPLACING, now)
        case Stage.REPLACING:
            return _at(rotation, Stage.RETIRING, now)
        case Stage.RETIRING:
            return None


def aborted(rotation: Rotation, now: datetime) -> Rotation:
    """Return the change in the opposite direction. Raises RequestError if this one is an abort already.

    In RETIRING some proxies do not trust the other root any more, so the revert begins with TRUSTING.
    """
    if rotation.aborted:
        raise RequestError("the rotation is already being aborted")
    back = replace(rotation, aborted=True)
    match rotation.stage:
        case Stage.TRUSTING:
            return _at(back, Stage.RETIRING, now)
        case Stage.REPLACING:
            return _at(replace(back, signer=rotation.other, other=rotation.signer), Stage.REPLACING, now)
        case Stage.RETIRING:
            return _at(back, Stage.TRUSTING, now)


def turned(rotation: Rotation, now: datetime) -> Rotation:
    """Return the change with the other root signing again; may be repeated, because both are trusted.

    Raises RequestError in the other stages, in which some proxies may not trust both.
    """
    if rotation.stage is not Stage.REPLACING:
        raise RequestError(f"the roots cannot be swapped in the stage {rotation.stage} of the rotation")
    other = replace(rotation, signer=rotation.other, other=rotation.signer, aborted=not rotation.aborted)
    return _at(other, Stage.REPLACING, now)


def without(rotation: Rotation, proxies: Iterable[str], now: datetime) -> Rotation:
    """Return the root rotation without waiting for these proxies."""
    second = now.replace(microsecond=0)
    given_up = {**dict.fromkeys(proxies, second), **rotation.given_up}
    return replace(rotation, given_up=MappingProxyType(dict(sorted(given_up.items()))))


def written(rotation: Rotation) -> bytes:
    """Return a root rotation as JSON, in the form parsed by `read`."""
    document = {
        "stage": rotation.stage.value,
        "signer": rotation.signer,
        "other": rotation.other,
        "began": rotation.began.isoformat(),
        "since": rotation.since.isoformat(),
        "aborted": rotation.aborted,
        "given_up": {name: at.isoformat() for name, at in rotation.given_up.items()},
    }
    return (json.dumps(document, indent=2) + "\n").encode("ascii")


def read(content: bytes) -> Rotation:
    """Parse a root rotation from the JSON of `written`. Raises ValueError, which names the field."""
    document = json_object(content)
    return Rotation(
        json_field(document, "stage", Stage),
        Fingerprint(json_field(document, "signer", str)),
        Fingerprint(json_field(document, "other", str)),
        json_field(document, "began", parse_time),
        json_field(document, "since", parse_time),
        aborted=json_field(document, "aborted", bool),
        given_up=json_field(document, "given_up", _given_up),
    )


def _given_up(field: Mapping[str, str]) -> Mapping[str, datetime]:
    return MappingProxyType({str(name): parse_time(at) for name, at in field.items()})


def _at(rotation: Rotation, stage: Stage, now: datetime) -> Rotation:
    return replace(rotation, stage=stage, since=now.replace(microsecond=0))
