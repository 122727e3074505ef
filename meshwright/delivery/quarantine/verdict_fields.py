"""Fields of a proxy's record with the verdicts that several servers share.

The fields are in the record that has the certificates of the proxy, under `rejected`, by unit of policy:

    {"rejected": {"0b1f9c...": {"type": "type.googleapis.com/envoy...RouteConfiguration", "resource":
        "rds-outbound.shop/cart|80", "about": "TrafficSplit shop/cart", "message": "no such cluster",
        "times": 2, "at": 1938928089}}}

A record has at most MOST verdicts, of at most MOST_BYTES in total, so that certificates have room beside
them. Above these limits, the verdicts that are in the record stay, and further ones are left out: they are in
force on the server that found them, and another server searches for them again. A writer keeps verdicts that
it cannot read, because a newer version may have written them.

A pure module.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from catalog.policy.units import UnitId
from meshwright.delivery.quarantine.record import SLOWEST_FROM
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.records.content import Fields, UnreadableContentError
from xds.cache import NodeKey
from xds.protocol.resources.resource import ResourceName, TypeUrl

REJECTED: Final = "rejected"
"""Name of the field."""

MOST: Final = 20
"""Limit of the verdicts in a record, as a number."""

MOST_BYTES: Final = 16 * 1024
"""Limit of the verdicts in a record, in bytes of JSON."""

LONGEST_TEXT: Final = 200
"""Limit of the error message of a proxy, and of the description of a unit, in characters."""

_TEXTS: Final = ("type", "resource", "about", "message")


@dataclass(frozen=True, slots=True)
class StoredVerdicts:
    """The verdicts in a record, sorted, and a sentence about each that cannot be read."""

    verdicts: tuple[Verdict, ...] = ()
    unreadable: tuple[str, ...] = ()


def shared_form(verdict: Verdict) -> Verdict:
    """Return a verdict as records have it: short texts, whole seconds, and a count up to SLOWEST_FROM.

    A greater count would not change the pause until the next offer, and each change is a write.
    """
    return replace(
        verdict,
        about=_short(verdict.about),
        message=_short(verdict.message),
        times=min(verdict.times, SLOWEST_FROM),
        date=verdict.date.replace(microsecond=0),
    )


def verdicts_in(node: NodeKey, fields: Fields | None) -> StoredVerdicts:
    """Return the verdicts in the fields of a proxy's record; unreadable ones are passed over."""
    stored = {} if fields is None else fields.get(REJECTED, {})
    if not isinstance(stored, dict):
        return StoredVerdicts(unreadable=(f"{REJECTED}: expected a JSON object",))
    verdicts, unreadable = list[Verdict](), list[str]()
    for unit, value in stored.items():
        try:
            verdicts.append(_verdict(node, UnitId(unit), value))
        except UnreadableContentError as error:
            unreadable.append(f"{REJECTED}, unit {unit}: {error}")
    return StoredVerdicts(tuple(sorted(verdicts)), tuple(sorted(unreadable)))


def with_verdicts(
    fields: Fields | None, found: Iterable[Verdict], ended: Collection[UnitId] = ()
) -> Fields | None:
    """Return the fields with these verdicts, and without the ended ones; None for no change.

    New verdicts above the limits are left out. Raises UnreadableContentError for a field of another form,
    which must stay as it is.
    """
    before = {} if fields is None else fields.get(REJECTED, {})
    if not isinstance(before, dict):
        raise UnreadableContentError(f"{REJECTED}: expected a JSON object")
    after = {unit: value for unit, value in before.items() if unit not in ended}
    for verdict in sorted(found):
        there = after.get(verdict.unit, {})
        if not isinstance(there, dict):
            continue
        longer = {**after, verdict.unit: {**there, **_stored(verdict)}}
        if verdict.unit in after or _fits(longer):
            after = longer
    if after == before:
        return None
    others = {name: value for name, value in (fields or {}).items() if name != REJECTED}
    return {**others, REJECTED: after} if after else others


def _fits(verdicts: Mapping[str, object]) -> bool:
    return len(verdicts) <= MOST and len(json.dumps(verdicts, ensure_ascii=False).encode()) <= MOST_BYTES


def _stored(verdict: Verdict) -> Mapping[str, object]:
    short = shared_form(verdict)
    return {
        "type": short.type_url,
        "resource": short.name,
        "about": short.about,
        "message": short.message,
        "times": short.times,
        "at": int(short.date.timestamp()),
    }


def _verdict(node: NodeKey, unit: UnitId, value: object) -> Verdict:
    if not isinstance(value, dict) or not all(isinstance(value.get(text), str) for text in _TEXTS):
        raise UnreadableContentError(f"expected a JSON object with the texts {', '.join(_TEXTS)}")
    times, seconds = value.get("times"), value.get("at")
    if type(times) is not int or times < 1:
        raise UnreadableContentError("times: expected an integer from 1")
    if type(seconds) is not int or not 0 <= seconds <= _LAST_SECOND:
        raise UnreadableContentError("at: expected whole seconds, for example 1938928089")
    return Verdict(
        node,
        unit,
        TypeUrl(value["type"]),
        ResourceName(value["resource"]),
        value["about"],
        value["message"],
        times,
        datetime.fromtimestamp(seconds, UTC),
    )


def _short(text: str) -> str:
    """Return a text in one line; parts of a character that JSON cannot have are replaced."""
    return " ".join(text.split())[:LONGEST_TEXT].encode(errors="replace").decode()


_LAST_SECOND: Final = int(datetime.max.replace(tzinfo=UTC).timestamp()) - 1
