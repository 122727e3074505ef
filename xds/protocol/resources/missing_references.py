"""References of a set's resources to resources outside of the set, updated incrementally."""

from collections.abc import Iterable, Mapping
from typing import Final

from xds.protocol.resources.layers import Layers
from xds.protocol.resources.resource import Reference, Resource, ResourceName, TypeUrl
from xds.protocol.resources.resources import NO_RESOURCES, Resources

References = frozenset[Reference]

Counts = Layers[Reference, int]
"""Number of resources that have each reference, whether or not the target exists."""

Tables = Mapping[TypeUrl, Resources]

NO_REFERENCES: Final[References] = frozenset()


def needs_of(tables: Tables) -> tuple[References, Counts]:
    """Return the references without a target in the tables, and the count of each reference."""
    counts: dict[Reference, int] = {}
    for table in tables.values():
        for resource in table.values():
            for reference in resource.references:
                counts[reference] = counts.get(reference, 0) + 1
    return _unanswered(counts, tables), Layers(dict(sorted(counts.items())))


def needs_after(
    needs: References,
    counts: Counts,
    before: Tables,
    after: Tables,
    changes: Mapping[TypeUrl, Mapping[ResourceName, Resource | None]],
) -> tuple[References, Counts]:
    """Return the result of `needs_of` after changes.

    Only changed resources and their references are examined.
    """
    result: dict[Reference, int] = {}
    for type_url, named in changes.items():
        for name, now in named.items():
            was = before.get(type_url, NO_RESOURCES).get(name)
            for resource, by in ((was, -1), (now, 1)):
                for reference in resource.references if resource is not None else ():
                    result[reference] = result.get(reference, counts.get(reference, 0)) + by
    known = counts.changed({reference: number or None for reference, number in result.items()})
    looked = {*result, *((type_url, name) for type_url, named in changes.items() for name in named)}
    still = _unanswered((item for item in looked if item in known), after)
    return (needs if still == looked & needs else (needs - looked | still) or NO_REFERENCES), known


def _unanswered(references: Iterable[Reference], tables: Tables) -> References:
    return (
        frozenset(reference for reference in references if not _is_there(reference, tables)) or NO_REFERENCES
    )


def _is_there(reference: Reference, tables: Tables) -> bool:
    type_url, name = reference
    return name in tables.get(type_url, NO_RESOURCES)
