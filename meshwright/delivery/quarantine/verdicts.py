"""Verdicts stored over a restart: units of policy rejected by one proxy."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from catalog.policy.units import UnitId
from xds.cache import NodeKey
from xds.protocol.resources.resource import ResourceName, TypeUrl

VERSION: Final = 1

LIMIT: Final = 10_000
"""Maximum number of stored verdicts; others are found again after a restart."""

_TEXTS: Final = ("proxy", "unit", "type", "resource", "about", "said", "at")


class VerdictsError(ValueError):
    """Error for file content that is not a document of verdicts."""


@dataclass(frozen=True, slots=True, order=True)
class Verdict:
    """A unit of policy rejected by a proxy.

    `message` is the error message, `times` the number of rejections in a row, and `date` the time of the last
    one. `about` describes the unit for people.
    """

    proxy: NodeKey
    unit: UnitId
    type_url: TypeUrl
    name: ResourceName
    about: str
    message: str
    times: int
    date: datetime


def written(verdicts: Iterable[Verdict]) -> bytes:
    """Return at most LIMIT verdicts as a JSON document."""
    result = [
        {
            "proxy": verdict.proxy,
            "unit": verdict.unit,
            "type": verdict.type_url,
            "resource": verdict.name,
            "about": verdict.about,
            "said": verdict.message,
            "at": verdict.date.isoformat(),
            "times": verdict.times,
        }
        for verdict in sorted(verdicts)[:LIMIT]
    ]
    return (json.dumps({"version": VERSION, "verdicts": result}, indent=1) + "\n").encode()


def read(content: bytes) -> tuple[Verdict, ...]:
    """Return the verdicts of a JSON document. Raise VerdictsError for any other content."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise VerdictsError(f"not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise VerdictsError(f"not of version {VERSION}")
    result = document.get("verdicts")
    if not isinstance(result, list):
        raise VerdictsError("verdicts is not a list")
    return tuple(_verdict(number, item) for number, item in enumerate(result))


def _verdict(number: int, result: object) -> Verdict:
    place = f"verdicts[{number}]"
    if not isinstance(result, Mapping) or not all(isinstance(result.get(text), str) for text in _TEXTS):
        raise VerdictsError(f"{place} must have all of these texts: {', '.join(_TEXTS)}")
    times = result.get("times")
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise VerdictsError(f"{place}.times is not a number from 1")
    try:
        date = datetime.fromisoformat(result["at"])
    except ValueError as error:
        raise VerdictsError(f"{place}.at is not a date") from error
    return Verdict(
        NodeKey(result["proxy"]),
        UnitId(result["unit"]),
        TypeUrl(result["type"]),
        ResourceName(result["resource"]),
        result["about"],
        result["said"],
        times,
        date,
    )
