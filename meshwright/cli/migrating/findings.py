"""What became of one thing on the way: one line of the report."""

import enum
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
"""A manifest that is a mapping."""


class MigrationStatus(enum.StrEnum):
    """How a thing of Open Service Mesh's stands here.

    WORKS: as it is. REWRITTEN: a manifest, or a value of the chart, says it anew. TO_DO: somebody's to do.
    UNUSED: it is understood, and nothing comes of it yet. NOT_ENFORCED: it is policy that has no effect.
    REFUSED: it cannot be read, or not be.
    """

    WORKS = "works"
    REWRITTEN = "rewritten"
    TO_DO = "to do"
    UNUSED = "not used"
    NOT_ENFORCED = "not enforced"
    REFUSED = "refused"


LOST = frozenset({MigrationStatus.UNUSED, MigrationStatus.NOT_ENFORCED, MigrationStatus.REFUSED})
"""What Open Service Mesh did, and is not done here."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found: of which object, at which of its fields, and the code that it has elsewhere.

    `field` and `code` may be empty. `do` is the next step, and empty where there is none.
    """

    what: str
    standing: MigrationStatus
    said: str
    field: str = ""
    code: str = ""
    do: str = ""


def named(document: Document) -> str:
    """Return what an object is called, as text that a terminal may be given."""
    metadata = mapping(document.get("metadata"))
    names = [str(each) for each in (metadata.get("namespace"), metadata.get("name")) if each]
    text = f"{document.get('kind')} {'/'.join(names) or '?'}"
    return text if text.isprintable() else ascii(text)[1:-1]


def mapping(value: object) -> dict[str, Any]:
    """Return a mapping, empty for what is none."""
    return value if isinstance(value, dict) else {}
