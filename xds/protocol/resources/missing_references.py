"""What the resources of a set refer to that is not among them: kept, and changed with what changes."""

from collections.abc import Iterable, Mapping
from typing import Final

from xds.protocol.resources.layers import Layers
from xds.protocol.resources.resource import Reference, Resource, ResourceName, TypeUrl
from xds.protocol.resources.resources import NO_RESOURCES, Resources

References = frozenset[Reference]

Counts = Layers[Reference, int]
"""How many resources refer to each reference, answered or not."""

Tables = Mapping[TypeUrl, Resources]

NO_REFERENCES: Final[References] = frozenset()


def needs_of(tables: Tables) -> tuple[References, Counts]:
    """Return what the resources refer to that is not there, and how many refer to what."""
    counts: dict[Reference, int] = {}
    for table in tables.values():
        for each in table.values():
            for reference in each.references:
                counts[reference] = counts.get(reference, 0) + 1
    return _unanswered(counts, tables), Layers(dict(sorted(counts.items())))


def needs_after(
    needs: References,
    counts: Counts,
    before: Tables,
    after: Tables,
    changes: Mapping[TypeUrl, Mapping[ResourceName, Resource | None]],
) -> tuple[References, Counts]:
    """Return the same after changes: what is looked at is what changed, and what that refers to."""
    found: dict[Reference, int] = {}
    for type_url, named in changes.items():
        for name, now in named.items():
            was = before.get(type_url, NO_RESOURCES).get(name)
            for resource, by in ((was, -1), (now, 1)):
                for reference in resource.references if resource is not None else ():
                    found[reference] = found.get(reference, counts.get(reference, 0)) + by
    known = counts.changed({reference: number or None for reference, number in found.items()})
    looked = {*found, *((type_url, name) for type_url, named in changes.items() for name in named)}
    still = _unanswered((each for each in looked if each in known), after)
    return (needs if still == looked & needs else (needs - looked | still) or NO_REFERENCES), known


def _unanswered(references: Iterable[Reference], tables: Tables) -> References:
    return frozenset(each for each in references if not _is_there(each, tables)) or NO_REFERENCES


def _is_there(reference: Reference, tables: Tables) -> bool:
    type_url, name = reference
    return name in tables.get(type_url, NO_RESOURCES)
