"""State of a source's objects: immutable, with the objects in force and the problems.

A holder is the unit of reading: a file with all its documents, or one object of a cluster. A new reading of a
holder changes only the objects of this holder.

A good object is in force. If the newest form of an object cannot be read, its last good form stays in force,
marked stale; kinds without a last good form (`Reader.keeps_last_form`) are out of force instead. An
unreadable document counts as the object with the name in the document. Without a readable
name, the document may be any missing object of the same holder, so all of these are kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Self, TypeVar

from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile, Origin
from meshwright.mesh.problems.problem import Problem, Problems, Severity, ordered
from meshwright.mesh.problems.tally import bounded
from meshwright.mesh.values.picture import Picture
from meshwright.providers.claims import duplicate, object_under, repeats
from meshwright.specs.codes import Code
from meshwright.specs.kinds import READ, is_foreign
from meshwright.specs.reader import ManifestReading, UnreadManifest

H = TypeVar("H", bound=Hashable)

_ALL_READ: Final[frozenset[str]] = frozenset()  # shared, because each empty frozenset would take 216 bytes
_SOMEWHERE: Final = InFile("")
_BESIDE: Final = "beside this one"


@dataclass(frozen=True, slots=True)
class Form:
    """The content of one holder: its objects in force, in the order of the text, and its problems.

    `mark` distinguishes contents: the text, its digest, or a version; empty for unreadable content. `unread`
    are the marks of unreadable documents.
    """

    mark: str = field(repr=False)
    objects: tuple[SourcedObject, ...]
    problems: Problems
    unread: frozenset[str] = _ALL_READ

    def by_claim(self) -> dict[ObjectKey, SourcedObject]:
        """Return the holder's objects by `ObjectKey.claim`; of objects with equal claims only one counts."""
        return {sourced.key.claim: sourced for sourced in self.objects}


def read_form(mark: str, readings: Sequence[tuple[Origin, ManifestReading]], before: Form | None) -> Form:
    """Return the content of a holder after a reading, with each document at its place.

    Of objects with equal claims the first counts. Objects of `before` whose documents could not be read now
    keep their last good form.
    """
    good: dict[ObjectKey, SourcedObject] = {}
    added: list[Problem] = []
    for origin, reading in readings:
        for key, value in reading.objects:
            sourced = SourcedObject(key, value, origin)
            first = good.setdefault(key.claim, sourced)
            if first is not sourced and not repeats(sourced, first):
                added.append(duplicate(sourced, first.key, first.origin))
    unread = [(origin, manifest) for origin, reading in readings for manifest in reading.unread]
    read = {*good, *(reading.key.claim for _, reading in readings if reading.key)}
    for sourced, place in _last_good(before, read, unread):
        good[sourced.key.claim] = replace(sourced, stale=True)
        added.append(_hold_problem(sourced, place))
    problems = (
        *(problem for _, reading in readings for problem in reading.problems),
        *bounded(tuple(added), _BESIDE),
    )
    objects = sorted(good.values(), key=lambda sourced_object: sourced_object.origin.order)
    return Form(mark, tuple(objects), problems, frozenset(e.mark for _, e in unread) or _ALL_READ)


def unreadable(problem: Problem, before: Form | None) -> Form:
    """Return the form of an unreadable holder: the previous objects, all stale."""
    there = before or Form("", (), ())
    if there.objects:
        problem = replace(
            problem, expected=f"{problem.expected}; the objects read from it before stay in force"
        )
    return Form(
        "",
        tuple(replace(sourced_object, stale=True) for sourced_object in there.objects),
        (problem,),
        there.unread,
    )


def _last_good(
    before: Form | None, read: Container[ObjectKey], unread: Sequence[tuple[Origin, UnreadManifest]]
) -> Iterator[tuple[SourcedObject, Origin]]:
    """Yield objects that stay in force without being `read`, each with the place of its possible document."""
    if before is None or not unread:
        return
    named: dict[ObjectKey, Origin] = {}
    for origin, manifest in unread:
        if manifest.key is not None:
            named.setdefault(manifest.key.claim, origin)
    had = before.by_claim()
    doubtful = [
        (origin, manifest)
        for origin, manifest in unread
        if manifest.key is None or manifest.key.claim not in had
    ]
    # A document that was unreadable already beside the good object cannot be the object's new form.
    fresh = _places(
        [(origin, manifest) for origin, manifest in doubtful if manifest.mark not in before.unread]
    )
    every = _places(doubtful)
    for claim, sourced in had.items():
        if claim in read or (claim in named and not READ[claim.kind].keeps_last_form):
            continue
        place = named.get(claim) or _may_be(claim, every if sourced.stale else fresh)
        if place is not None:
            yield sourced, place


def _places(doubtful: Iterable[tuple[Origin, UnreadManifest]]) -> Mapping[object, tuple[int, Origin]]:
    """Return the first place of unreadable documents, by the property that they share with an object.

    A document without a key or of an unknown kind may be any object (property None). Any other document
    shares the kind or the name with the object: if both differ, the document is another object.
    """
    result: dict[object, tuple[int, Origin]] = {}
    for number, (origin, manifest) in enumerate(doubtful):
        key = manifest.key
        if key is None or (key.kind not in READ and not is_foreign(key.kind)):
            result.setdefault(None, (number, origin))
        else:
            for common in _in_common(key.claim):
                result.setdefault(common, (number, origin))
    return result


def _may_be(claim: ObjectKey, places: Mapping[object, tuple[int, Origin]]) -> Origin | None:
    """Return the place of the first document that may define the object, or None."""
    result = [places[common] for common in (None, *_in_common(claim)) if common in places]
    return min(result, key=lambda item: item[0])[1] if result else None


def _in_common(claim: ObjectKey) -> tuple[Kind, str]:
    return claim.kind, claim.path


def _hold_problem(sourced: SourcedObject, place: Origin) -> Problem:
    expected = (
        f"cannot be read here; the last good form of the object, from {sourced.origin}, "
        "stays in force. Correct the document, or remove it to remove the object"
    )
    return Problem(
        code=str(Code.HELD), severity=Severity.WARNING, origin=place, key=sourced.key, expected=expected
    )


@dataclass(frozen=True, slots=True)
class Objects(ABC, Generic[H]):
    """The objects of all holders of a source; equal forms make equal states, in any order of arrival.

    `contested` has the objects with several holders, and these holders sorted; the form of the first holder
    is in force. `bad` are the holders with problems of their own, and `stale` is the number of objects in
    force in their last good form.
    """

    holders: Picture[H, Form] = field(default_factory=Picture)
    in_force: Picture[ObjectKey, SourcedObject] = field(default_factory=Picture, compare=False)
    contested: Mapping[ObjectKey, tuple[H, ...]] = field(default_factory=dict, compare=False)
    bad: frozenset[H] = field(default_factory=frozenset, compare=False)
    all_problems: Problems = field(default=(), compare=False)
    stale: int = field(default=0, compare=False)

    @staticmethod
    @abstractmethod
    def holder_of(sourced: SourcedObject) -> H:
        """Return the holder (for example the file) of an object of this source."""
        ...

    def objects(self) -> Picture[ObjectKey, SourcedObject]:
        """Return the objects that apply, in the order of keys; of equal claims the first holder's counts."""
        return self.in_force

    def problems(self) -> Problems:
        """Return all problems of the source, sorted by place."""
        return self.all_problems

    def holding(self, forms: Mapping[H, Form | None]) -> Self:
        """Return the state after changes of some holders, None for a removed holder; `self` without a change.

        The cost grows with the objects of these holders, plus one copy of the tables.
        """
        forms = {holder: form for holder, form in forms.items() if form != self.holders.get(holder)}
        return self._with(forms) if forms else self

    def _with(self, forms: Mapping[H, Form | None]) -> Self:
        holders = self.holders.changed(forms)
        # Claims by holder, computed once: of changed holders, and later of holders of contested objects.
        claimed = {holder: form.by_claim() for holder, form in forms.items() if form is not None}
        now: dict[ObjectKey, list[H]] = {}
        for holder, claims in claimed.items():
            for claim in claims:
                now.setdefault(claim, []).append(holder)
        contested = dict(self.contested)
        edits: dict[ObjectKey, SourcedObject | None] = {}
        for claim in self._claims(forms):
            first = object_under(self.in_force, claim)
            # Holders are stored for contested objects only; any other object has one, named by its origin.
            there = contested.pop(claim, None) or (() if first is None else (self.holder_of(first),))
            kept = [holder for holder in there if holder not in forms]
            having = tuple(sorted([*kept, *now.get(claim, ())]))
            if len(having) > 1:
                contested[claim] = having
            if first is not None:
                # The new object can have another key of this claim: a Pod in place of a Workload.
                edits[first.key] = None
            if having:
                if having[0] not in claimed:
                    claimed[having[0]] = holders[having[0]].by_claim()
                sourced_object = claimed[having[0]][claim]
                edits[sourced_object.key] = sourced_object
        bad = self.bad - forms.keys() | {item for item, form in forms.items() if form and form.problems}
        # Problems are collected again only if they may differ, because this walks all holders with problems.
        same = contested == self.contested and not (bad | self.bad) & forms.keys()
        problems = (
            self.all_problems if same and not _moved(contested, forms) else _problems(holders, bad, contested)
        )
        in_force = self.in_force.changed(edits)
        fresher = sum(_is_stale(self.in_force.get(key)) for key in edits)
        stale = self.stale - fresher + sum(map(_is_stale, edits.values()))
        return type(self)(holders, in_force, contested, bad, problems, stale)

    def _claims(self, forms: Mapping[H, Form | None]) -> dict[ObjectKey, None]:
        """Return the claims of all objects of the changed holders, before and after the change."""
        result = (form for holder, after in forms.items() for form in (self.holders.get(holder), after))
        return {
            sourced_object.key.claim: None
            for form in result
            if form is not None
            for sourced_object in form.objects
        }


def _is_stale(sourced_object: SourcedObject | None) -> bool:
    return sourced_object is not None and sourced_object.stale


def _moved(contested: Mapping[ObjectKey, tuple[H, ...]], forms: Mapping[H, Form | None]) -> bool:
    """Return whether a changed holder has a contested object, since the object's place may have moved."""
    return any(holder in forms for having in contested.values() for holder in having)


def _problems(
    holders: Mapping[H, Form], bad: frozenset[H], contested: Mapping[ObjectKey, tuple[H, ...]]
) -> Problems:
    """Return the problems of the holders, and a problem for each object with several definitions."""
    problems = set(_summed(problem for holder in bad for problem in holders[holder].problems))
    twice = set[Problem]()
    having_some = {holder for having in contested.values() for holder in having}
    claimed = {holder: holders[holder].by_claim() for holder in having_some}
    for claim, having in contested.items():
        first, *others = (claimed[holder][claim] for holder in having)
        twice.update(
            duplicate(sourced_object, first.key, first.origin)
            for sourced_object in others
            if not repeats(sourced_object, first)
        )
    return ordered((*problems, *bounded(ordered(twice), _BESIDE)))


def _summed(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield problems, with one problem for each unsupported kind, at its first place.

    At most 200 such kinds are listed, followed by one problem with the number of the others.
    """
    places: dict[Problem, list[Origin]] = {}
    for problem in problems:
        if problem.code == Code.OTHER_KIND:
            places.setdefault(replace(problem, origin=_SOMEWHERE), []).append(problem.origin)
        else:
            yield problem
    summed = (
        replace(
            problem,
            origin=min(place, key=lambda item: item.order),
            expected=problem.expected
            if len(place) == 1
            else f"{problem.expected}; there are {len(place)} such objects",
        )
        for problem, place in places.items()
    )
    yield from bounded(ordered(summed), _BESIDE)
