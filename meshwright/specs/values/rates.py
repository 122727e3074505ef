"""Rate limits that a proxy counts by itself.

Values have the bounds of OSM's schema and of Envoy, which rejects a whole resource for an unknown status or
more than ten headers.
"""

from typing import Final

from meshwright.mesh.policies.limits import RateLimit, RateUnit
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates, one_of
from meshwright.specs.quotes import never
from meshwright.specs.values.headers import VALUE_RULE, is_name, is_value

MOST: Final = 2**32 - 1
"""Envoy's counters have 32 bits; for a rate, the sum of amount and burst must fit."""

MOST_HEADERS: Final = 10
STATUSES: Final = frozenset(
    {*range(400, 418), *range(421, 425), 426, 428, 429, 431, *range(500, 509), 510, 511}
)
"""HTTP error statuses in Envoy's enum."""

STATUS_RULE: Final = "must be an HTTP error status from 400 to 599 that Envoy knows, for example 429 or 503"
UNITS: Final = tuple(RateUnit)
PATH_RULE: Final = "must be a regular expression (RE2) for the path of requests, for example /api/.*"
HEADER_RULE: Final = (
    "must be the name of a header, for example retry-after, and not host, which responses do not have"
)


def status(fields: Fields) -> int:
    """Return the HTTP status for requests beyond a rate limit, 429 by default."""
    number = fields.whole("responseStatusCode", 400, 599, default=429) or 429
    if number not in STATUSES:
        fields.wrong("responseStatusCode", STATUS_RULE)
    return number


def request_rate(fields: Fields) -> RateLimit:
    """Read a limit of requests, with the answer to requests above it."""
    return rate(fields, "requests", status(fields), _headers(fields))


def rate(
    fields: Fields, counted: str, status: int = 429, headers: tuple[tuple[str, str], ...] = ()
) -> RateLimit:
    """Read a limit; `counted` is the name of the field with the amount."""
    if not fields.has(counted):
        fields.notes.refuse(
            Code.MISSING, fields.at(counted), f"is missing; must be a whole number from 1 to {MOST}"
        )
    amount = fields.whole(counted, 1, MOST, default=1) or 1
    unit = fields.required_text("unit", one_of(UNITS), never)
    if unit and unit not in UNITS:
        fields.wrong("unit", one_of(UNITS))
    burst = fields.whole("burst", 0, MOST, default=0) or 0
    if amount + burst > MOST:
        fields.wrong("burst", f"the sum of burst and {counted} must be at most {MOST}")
    fields.close()
    return RateLimit(amount, RateUnit(unit) if unit in UNITS else RateUnit.SECOND, burst, status, headers)


def _headers(fields: Fields) -> tuple[tuple[str, str], ...]:
    sections = fields.sections("responseHeadersToAdd")
    result = [
        (item.required_text("name", HEADER_RULE), item.required_text("value", VALUE_RULE))
        for item in sections
    ]
    for section, (name, value) in zip(sections, result, strict=True):
        if name and (not is_name(name) or name.lower() == "host"):
            section.wrong("name", HEADER_RULE)
        if value and not is_value(value):
            section.wrong("value", VALUE_RULE)
        section.close()
    for index in duplicates([name.lower() for name, _ in result]):
        sections[index].wrong("name", "must differ from the names of the other headers", Code.DUPLICATE)
    if len(result) > MOST_HEADERS:
        fields.wrong("responseHeadersToAdd", f"must have at most {MOST_HEADERS} headers")
    return tuple(result)
