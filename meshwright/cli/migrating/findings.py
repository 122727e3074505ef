"""One finding of a migration: one line of the report."""

import enum
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
"""A manifest, which is a mapping."""


class MigrationStatus(enum.StrEnum):
    """The result of migrating one thing of Open Service Mesh.

    WORKS: unchanged. REWRITTEN: replaced by a new manifest or a value of the chart. TO_DO: needs work by the
    user. UNUSED: understood, and without effect. NOT_ENFORCED: policy without effect. REFUSED: invalid, or
    not allowed.
    """

    WORKS = "works"
    REWRITTEN = "rewritten"
    TO_DO = "to do"
    UNUSED = "not used"
    NOT_ENFORCED = "not enforced"
    REFUSED = "refused"


LOST = frozenset({MigrationStatus.UNUSED, MigrationStatus.NOT_ENFORCED, MigrationStatus.REFUSED})
"""Results that lose a function of Open Service Mesh."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about the object `what`: field, result, and the problem's code in lint and logs.

    `field` and `code` may be empty. `do` is the next step, empty if there is none.
    """

    what: str
    standing: MigrationStatus
    said: str
    field: str = ""
    code: str = ""
    do: str = ""


def named(document: Document) -> str:
    """Return an object's kind and name, for example `Service shop/store`, without control characters."""
    metadata = mapping(document.get("metadata"))
    names = [str(item) for item in (metadata.get("namespace"), metadata.get("name")) if item]
    text = f"{document.get('kind')} {'/'.join(names) or '?'}"
    return text if text.isprintable() else ascii(text)[1:-1]


def mapping(value: object) -> dict[str, Any]:
    """Return a mapping, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}
