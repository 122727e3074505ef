"""The objects of several sources as one set, by declared precedence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from meshwright.mesh.objects import ObjectKey, SourcedObject, created_at
from meshwright.mesh.problems.problem import Problem, Problems, ordered
from meshwright.mesh.values.picture import Picture
from meshwright.providers.claims import disputed, object_under

Said = tuple[str, Picture[ObjectKey, SourcedObject]]
"""A source's name and its objects."""


@dataclass(frozen=True, slots=True)
class MergedObjects:
    """The objects of several sources at one moment; the first source with an object decides its value.

    The merged objects refer to the pictures of the sources and have no table of their own. `disputes` are the
    contradictions, by claim.
    """

    states: tuple[Said, ...] = ()
    disputes: Mapping[ObjectKey, Problems] = field(default_factory=dict)

    @property
    def problems(self) -> Problems:
        """All contradictions between sources, sorted."""
        return ordered(problem for dispute in self.disputes.values() for problem in dispute)

    def objects(self) -> dict[ObjectKey, SourcedObject]:
        """Return all objects that apply, sorted by key; the cost grows with all objects."""
        return dict(
            sorted(
                (key, sourced_object)
                for key, sourced_object in self.since(MergedObjects()).items()
                if sourced_object is not None
            )
        )

    def since(self, before: "MergedObjects") -> dict[ObjectKey, SourcedObject | None]:
        """Return the changed objects since `before`, None for removed ones; the cost grows with changes.

        A removal precedes the addition that replaces it under another key, for example if a Pod of the same
        name replaces a Workload.
        """
        edits: dict[ObjectKey, SourcedObject | None] = {}
        if len(_holding(self.states, before.states)) < 2:
            # With one source, which has at most one object of a claim, its changes are the merged changes.
            steps = tuple(_steps(self.states, before.states))
            edits.update(
                (key, None)
                for step in steps
                for key, sourced_object in step.items()
                if sourced_object is None
            )
            for step in steps:
                edits.update(step)
            return edits
        for claim in _changed(self.states, before.states):
            was, now = before.in_force(claim), self.in_force(claim)
            if was is now or was == now:
                continue
            if was is not None and (now is None or now.key != was.key):
                edits[was.key] = None
            if now is not None:
                edits[now.key] = now
        return edits

    def in_force(self, claim: ObjectKey) -> SourcedObject | None:
        """Return the object under a claim, from the first source with such an object; otherwise None."""
        return next(
            (
                sourced_object
                for _, objects in self.states
                if (sourced_object := object_under(objects, claim)) is not None
            ),
            None,
        )


def merge(states: Sequence[Said], before: MergedObjects | None = None) -> MergedObjects:
    """Merge the objects of named sources; an earlier source has precedence over later ones.

    A different value in a later source is a problem, an equal value is fine. For example, if the directory
    precedes the cluster and both have a Service `shop/web`, the directory's is in force. With `before`, the
    previous result, only the changes since then are examined. Without a change the result is `before` itself.
    """
    of, before = tuple(states), before or MergedObjects()
    if [(name, id(objects)) for name, objects in of] == [
        (name, id(objects)) for name, objects in before.states
    ]:
        return before
    disputes = before.disputes
    if len(_holding(of, before.states)) > 1:
        result = {claim: tuple(_disputed(claim, of)) for claim in _changed(of, before.states)}
        disputes = {claim: problems for claim, problems in {**disputes, **result}.items() if problems}
    return MergedObjects(of, disputes)


def _holding(states: Iterable[Said], before: Iterable[Said]) -> set[str]:
    """Return the names of the sources with objects now or before."""
    return {name for name, objects in (*states, *before) if objects}


def _steps(
    states: Iterable[Said], before: Iterable[Said]
) -> Iterator[Mapping[ObjectKey, SourcedObject | None]]:
    """Yield the changed objects of each source."""
    new, old = dict(states), dict(before)
    nothing: Picture[ObjectKey, SourcedObject] = Picture()
    return (new.get(name, nothing).since(old.get(name, nothing)) for name in {**new, **old})


def _changed(states: Iterable[Said], before: Iterable[Said]) -> dict[ObjectKey, None]:
    """Return the claims under which any source has changed an object."""
    return {key.claim: None for step in _steps(states, before) for key in step}


def _disputed(claim: ObjectKey, states: Sequence[Said]) -> Iterator[Problem]:
    holders = [
        (name, sourced_object)
        for name, objects in states
        if (sourced_object := object_under(objects, claim)) is not None
    ]
    for _, second in holders[1:]:
        winner, first = holders[0]
        # An object in a file has no creation time; the same manifest in the cluster has one.
        if created_at(first.value, "") != created_at(second.value, ""):
            yield disputed(second, first, winner)
