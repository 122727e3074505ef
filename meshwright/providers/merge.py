"""The objects of several sources as one, by declared precedence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from meshwright.mesh.objects import ObjectKey, SourcedObject, created_at
from meshwright.mesh.problems.problem import Problem, Problems, ordered
from meshwright.mesh.values.picture import Picture
from meshwright.providers.claims import disputed, held

Said = tuple[str, Picture[ObjectKey, SourcedObject]]
"""A source's name and its objects."""


@dataclass(frozen=True, slots=True)
class MergedObjects:
    """What several sources say at one moment, of an object that more than one has the first one's form.

    It holds their own pictures and no table besides; `disputes` are the contradictions, by object.
    """

    of: tuple[Said, ...] = ()
    disputes: Mapping[ObjectKey, Problems] = field(default_factory=dict)

    @property
    def problems(self) -> Problems:
        """The contradictions, sorted."""
        return ordered(each for said in self.disputes.values() for each in said)

    def objects(self) -> dict[ObjectKey, SourcedObject]:
        """Return everything that is in force, sorted by key; looks at all there is."""
        return dict(
            sorted((key, each) for key, each in self.since(MergedObjects()).items() if each is not None)
        )

    def since(self, before: "MergedObjects") -> dict[ObjectKey, SourcedObject | None]:
        """Return what is in force otherwise than before, None for what is gone; costs what has changed.

        What goes comes before what takes its place under another key.
        """
        edits: dict[ObjectKey, SourcedObject | None] = {}
        if len(_holding(self.of, before.of)) < 2:
            # One source holds everything, at most one object of a claim: what is other there is other here.
            steps = tuple(_steps(self.of, before.of))
            edits.update((key, None) for step in steps for key, each in step.items() if each is None)
            for step in steps:
                edits.update(step)
            return edits
        for claim in _changed(self.of, before.of):
            was, now = before.in_force(claim), self.in_force(claim)
            if was is now or was == now:
                continue
            if was is not None and (now is None or now.key != was.key):
                edits[was.key] = None
            if now is not None:
                edits[now.key] = now
        return edits

    def in_force(self, claim: ObjectKey) -> SourcedObject | None:
        """Return what stands under a claim, of whichever source."""
        return next((found for _, objects in self.of if (found := held(objects, claim)) is not None), None)


def merge(said: Sequence[Said], before: MergedObjects | None = None) -> MergedObjects:
    """Merge the objects of named sources: what an earlier one has is in force, whatever later ones say.

    What a later source says differently is a problem, the same value is none. Given what sources came to
    before, it looks at what has changed since; if that is nothing, it returns the very same.
    """
    of, before = tuple(said), before or MergedObjects()
    if [(name, id(objects)) for name, objects in of] == [(name, id(objects)) for name, objects in before.of]:
        return before
    disputes = before.disputes
    if len(_holding(of, before.of)) > 1:
        found = {claim: tuple(_disputed(claim, of)) for claim in _changed(of, before.of)}
        disputes = {claim: each for claim, each in {**disputes, **found}.items() if each}
    return MergedObjects(of, disputes)


def _holding(of: Iterable[Said], before: Iterable[Said]) -> set[str]:
    """Return the sources that hold anything, or did."""
    return {name for name, objects in (*of, *before) if objects}


def _steps(of: Iterable[Said], before: Iterable[Said]) -> Iterator[Mapping[ObjectKey, SourcedObject | None]]:
    """Yield what has changed in each of the sources."""
    new, old = dict(of), dict(before)
    nothing: Picture[ObjectKey, SourcedObject] = Picture()
    return (new.get(name, nothing).since(old.get(name, nothing)) for name in {**new, **old})


def _changed(of: Iterable[Said], before: Iterable[Said]) -> dict[ObjectKey, None]:
    """Return what has changed in one of the sources, by the keys under which they know it."""
    return {key.claim: None for step in _steps(of, before) for key in step}


def _disputed(claim: ObjectKey, of: Sequence[Said]) -> Iterator[Problem]:
    holders = [(name, found) for name, objects in of if (found := held(objects, claim)) is not None]
    for _, second in holders[1:]:
        winner, first = holders[0]
        # A file has no age and the cluster's object of the same text has one.
        if created_at(first.value, "") != created_at(second.value, ""):
            yield disputed(second, first, winner)
