"""The manifests of a source as one immutable state: what is in force, and what is wrong.

A file's new text changes only what that file holds. What is good is in force; an object whose newest form
is bad keeps its last good form, marked stale; an object is gone when its file, or a file all of whose
documents could be named, no longer holds it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from mesh.objects import ObjectKey, Sourced
from mesh.origins import InFile, Origin
from mesh.picture import Picture
from mesh.problems import Problem, Problems, ordered
from providers.claims import duplicate, held, repeats
from providers.directory.file_form import Content, FileForm, read_file
from specs.codes import Code

_SOMEWHERE: Final = InFile("")


@dataclass(frozen=True, slots=True)
class Manifests:
    """All files of a source; equal files make equal states, in whatever order they came.

    `contested` are the files of each object that more than one of them holds, sorted, `bad` those that have
    problems of their own; `stale` counts the objects that are in force in their last good form.
    """

    files: Picture[str, FileForm] = field(default_factory=Picture)
    in_force: Picture[ObjectKey, Sourced] = field(default_factory=Picture, compare=False)
    contested: Mapping[ObjectKey, tuple[str, ...]] = field(default_factory=dict, compare=False)
    bad: frozenset[str] = field(default_factory=frozenset, compare=False)
    said: Problems = field(default=(), compare=False)
    stale: int = field(default=0, compare=False)

    def apply(self, file: str, content: Content) -> "Manifests":
        """Return the state with one file's new content, or without the file if that is None."""
        return self.apply_all({file: content})

    def apply_all(self, contents: Mapping[str, Content]) -> "Manifests":
        """Return the state with the new contents of several files at once; itself if that changes nothing.

        Costs what these files hold, and a copy of the tables.
        """
        forms: dict[str, FileForm | None] = {}
        for file, content in contents.items():
            before = self.files.get(file)
            after = None if content is None else read_file(file, content, before)
            if after != before:
                forms[file] = after
        return self._with(forms) if forms else self

    def objects(self) -> Picture[ObjectKey, Sourced]:
        """Return what is in force, in the order of keys; of two with equal keys the first file's."""
        return self.in_force

    def problems(self) -> Problems:
        """Return everything that is wrong, sorted by where it stands."""
        return self.said

    def _with(self, forms: Mapping[str, FileForm | None]) -> "Manifests":
        """Return the state with other forms of some files."""
        files = self.files.changed(forms)
        claimed = {file: form.by_claim() for file, form in forms.items() if form is not None}
        now: dict[ObjectKey, list[str]] = {}
        for file, found in claimed.items():
            for claim in found:
                now.setdefault(claim, []).append(file)
        contested = dict(self.contested)
        edits: dict[ObjectKey, Sourced | None] = {}
        for claim in self._claims(forms):
            first = held(self.in_force, claim)
            # Holders are kept of what is contested alone; all else has one, the file it is in force from.
            there = contested.pop(claim, () if first is None else (_file_of(first),))
            kept = [file for file in there if file not in forms]
            holders = tuple(sorted([*kept, *now.get(claim, ())]))
            if len(holders) > 1:
                contested[claim] = holders
            if first is not None:
                # What comes may stand under another key of the same claim: a Pod where there was a Workload.
                edits[first.key] = None
            if holders:
                found = claimed.get(holders[0]) or files[holders[0]].by_claim()
                edits[found[claim].key] = found[claim]
        bad = self.bad - forms.keys() | {file for file, form in forms.items() if form and form.problems}
        # What is wrong is gathered anew only where it may be other: that costs what is wrong in all files.
        same = contested == self.contested and not (bad | self.bad) & forms.keys()
        said = self.said if same and not _moved(contested, forms) else _problems(files, bad, contested)
        in_force = self.in_force.changed(edits)
        fresher = sum(_is_stale(self.in_force.get(key)) for key in edits)
        stale = self.stale - fresher + sum(map(_is_stale, edits.values()))
        return Manifests(files, in_force, contested, bad, said, stale)

    def _claims(self, forms: Mapping[str, FileForm | None]) -> dict[ObjectKey, None]:
        """Return what the files hold now or will hold."""
        found = (form for file, after in forms.items() for form in (self.files.get(file), after))
        return {each.key.claim: None for form in found if form is not None for each in form.objects}


def _file_of(sourced: Sourced) -> str:
    match sourced.origin:
        case InFile(path):
            return path
        case other:
            raise TypeError(f"{sourced.key} is from {other}, which is no file")


def _is_stale(found: Sourced | None) -> bool:
    return found is not None and found.stale


def _moved(contested: Mapping[ObjectKey, tuple[str, ...]], forms: Mapping[str, FileForm | None]) -> bool:
    """Say whether one of the files holds something contested: its place may be another one now."""
    return any(file in forms for holders in contested.values() for file in holders)


def _problems(
    files: Mapping[str, FileForm], bad: frozenset[str], contested: Mapping[ObjectKey, tuple[str, ...]]
) -> Problems:
    """Return what is wrong with the files themselves, and what is defined more than once."""
    found = set(_summed(problem for file in bad for problem in files[file].problems))
    for claim, holders in contested.items():
        first, *others = (files[file].by_claim()[claim] for file in holders)
        found.update(duplicate(each, first.key, first.origin) for each in others if not repeats(each, first))
    return ordered(found)


def _summed(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield problems, of those that tell of a kind that is not read one for each kind, at its first place."""
    places: dict[Problem, list[Origin]] = {}
    for problem in problems:
        if problem.code == Code.OTHER_KIND:
            places.setdefault(replace(problem, origin=_SOMEWHERE), []).append(problem.origin)
        else:
            yield problem
    for problem, found in places.items():
        said = problem.expected if len(found) == 1 else f"{problem.expected}; {len(found)} objects are such"
        yield replace(problem, origin=min(found, key=lambda each: each.order), expected=said)
