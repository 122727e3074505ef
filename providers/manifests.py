"""The manifests of a source as one immutable state: what is in force, and what is wrong.

A file's new text changes only what that file holds. What is good is in force; an object whose newest form
is bad keeps its last good form, marked stale; an object is gone when its file, or a file all of whose
documents could be named, no longer holds it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mesh.endpoints import Inventory, slice_key
from mesh.names import Namespace
from mesh.objects import EndpointSlice, ObjectKey, Origin, Problem, Severity, Sourced
from mesh.picture import Picture
from mesh.workload import Workload, WorkloadKey
from providers.documents import Document, documents
from smi.codes import Code
from smi.manifest import key_of
from smi.reader import Reading, read


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is there and whose text cannot be had; what it held stays in force."""

    code: Code
    expected: str


Content = str | Unreadable | None
"""A file's text, why it cannot be had, or None if the file is gone."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """What one file holds: its objects in force in document order, and its own problems."""

    digest: str
    objects: tuple[Sourced, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Manifests:
    """All files of a source; equal files make equal states, in whatever order they came.

    `contested` are the files of each object that more than one of them holds, sorted, `bad` those that have
    problems of their own.
    """

    files: Picture[str, FileForm] = field(default_factory=Picture)
    in_force: Picture[ObjectKey, Sourced] = field(default_factory=Picture, compare=False)
    endpoints: Inventory = field(default_factory=Inventory, compare=False)
    contested: Mapping[ObjectKey, tuple[str, ...]] = field(default_factory=dict, compare=False)
    bad: frozenset[str] = field(default_factory=frozenset, compare=False)
    said: tuple[Problem, ...] = field(default=(), compare=False)

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

    def problems(self) -> tuple[Problem, ...]:
        """Return everything that is wrong, sorted by where it stands."""
        return self.said

    def inventory(self) -> Inventory:
        """Return the workloads (Workloads and Pods) and endpoint slices in force."""
        return self.endpoints

    def _with(self, forms: Mapping[str, FileForm | None]) -> "Manifests":
        """Return the state with other forms of some files."""
        files = self.files.changed(forms)
        held = {file: _by_claim(form) for file, form in forms.items() if form is not None}
        now: dict[ObjectKey, list[str]] = {}
        for file, found in held.items():
            for claim in found:
                now.setdefault(claim, []).append(file)
        contested = dict(self.contested)
        edits: dict[ObjectKey, Sourced | None] = {}
        for claim in self._claims(forms):
            first = self._first(claim)
            there = contested.pop(claim, () if first is None else (first.origin.source,))
            kept = [file for file in there if file not in forms]
            holders = tuple(sorted([*kept, *now.get(claim, ())]))
            if len(holders) > 1:
                contested[claim] = holders
            if first is not None:
                edits[first.key] = None
            if holders:
                found = held.get(holders[0]) or _by_claim(files[holders[0]])
                edits[found[claim].key] = found[claim]
        bad = self.bad - forms.keys() | {file for file, form in forms.items() if form and form.problems}
        same = contested == self.contested and not (bad | self.bad) & forms.keys()
        said = self.said if same and not _moved(contested, forms) else _problems(files, bad, contested)
        in_force = self.in_force.changed(edits)
        return Manifests(files, in_force, self._endpoints(edits), contested, bad, said)

    def _claims(self, forms: Mapping[str, FileForm | None]) -> dict[ObjectKey, None]:
        """Return what the files hold now or will hold."""
        found = (form for file, after in forms.items() for form in (self.files.get(file), after))
        return {_claim(each.key): None for form in found if form is not None for each in form.objects}

    def _first(self, claim: ObjectKey) -> Sourced | None:
        """Return what is in force under a claim."""
        found = self.in_force.get(claim)
        if found is None and (alias := _ALIASES.get(claim.kind)) is not None:
            found = self.in_force.get(replace(claim, kind=alias))
        return found

    def _endpoints(self, edits: Mapping[ObjectKey, Sourced | None]) -> Inventory:
        """Return the inventory after edits of the objects in force."""
        before = [held.value for key in edits if (held := self.in_force.get(key)) is not None]
        after = [held.value for held in edits.values() if held is not None]
        workloads: dict[WorkloadKey, Workload | None] = {
            each.key: None for each in before if isinstance(each, Workload)
        }
        slices: dict[ObjectKey, EndpointSlice | None] = {
            slice_key(each): None for each in before if isinstance(each, EndpointSlice)
        }
        workloads.update((each.key, each) for each in after if isinstance(each, Workload))
        slices.update((slice_key(each), each) for each in after if isinstance(each, EndpointSlice))
        return self.endpoints.changed(workloads, slices)


def _by_claim(form: FileForm) -> dict[ObjectKey, Sourced]:
    return {_claim(sourced.key): sourced for sourced in form.objects}


def _moved(contested: Mapping[ObjectKey, tuple[str, ...]], forms: Mapping[str, FileForm | None]) -> bool:
    """Say whether one of the files holds something contested: its place may be another one now."""
    return any(file in forms for holders in contested.values() for file in holders)


def _problems(
    files: Mapping[str, FileForm], bad: frozenset[str], contested: Mapping[ObjectKey, tuple[str, ...]]
) -> tuple[Problem, ...]:
    """Return what is wrong with the files themselves, and what is defined more than once."""
    found = {problem for file in bad for problem in files[file].problems}
    for claim, holders in contested.items():
        first, *others = (_by_claim(files[file])[claim] for file in holders)
        found.update(_duplicate(each, first.key, first.origin) for each in others)
    return tuple(sorted(found, key=_problem_order))


_ALIASES: Final = {"Workload": "Pod", "EndpointSlice": "Endpoints"}
"""Kinds that a source knows as another kind: Pods are workloads, Endpoints are slices."""

_CLAIMED: Final = {alias: kind for kind, alias in _ALIASES.items()}


def _claim(key: ObjectKey) -> ObjectKey:
    """Return the key under which a source knows an object."""
    kind = _CLAIMED.get(key.kind)
    return key if kind is None else replace(key, kind=kind)


def _problem_order(problem: Problem) -> tuple[Origin, str, str, ObjectKey, str, str]:
    key = problem.key or ObjectKey("", Namespace(""), "")
    return (problem.origin, problem.code, problem.field, key, problem.value, problem.expected)


def _duplicate(second: Sourced, key: ObjectKey, first: Origin) -> Problem:
    expected = f"must be defined once; {key} at {first} comes first and is in force"
    return Problem(str(Code.DUPLICATE_OBJECT), Severity.ERROR, second.origin, second.key, "", "", expected)


def read_file(file: str, content: str | Unreadable, before: FileForm | None) -> FileForm:
    """Read a file's content, given what it held before."""
    held = before.objects if before else ()
    if isinstance(content, Unreadable):
        problem = _file_problem(file, content.code, content.expected)
        return FileForm("", _stale(held), (problem,))
    digest = digest_of(content)
    if before is not None and before.digest == digest:
        return before
    found = documents(content, as_json=file.endswith(".json"))
    readings = [_read(file, document) for document in found]
    good, problems = _distinct(file, found, readings)
    return _with_last_good(FileForm(digest, good, problems), held, readings)


def digest_of(content: Content) -> str:
    """Return a digest by which two contents of a file can be told apart; empty if there is no text."""
    return hashlib.sha256(content.encode()).hexdigest() if isinstance(content, str) else ""


def _file_problem(file: str, code: Code, expected: str) -> Problem:
    return Problem(str(code), Severity.ERROR, Origin(file), None, "", "", expected)


def _read(file: str, document: Document) -> Reading:
    """Read one document; with faults it only says which object it means, if it can be told.

    Two documents that ran into one, because the line between them was lost, show as a fault as well:
    therefore a document with faults may always stand for more than it names.
    """
    if not document.faults:
        return read(document.value, Origin(file, document.number, document.line))
    key = key_of(document.value) if isinstance(document.value, dict) else None
    problems = tuple(
        Problem(
            str(fault.code),
            Severity.ERROR,
            Origin(file, document.number, fault.line),
            key,
            "",
            "",
            fault.expected,
        )
        for fault in document.faults
    )
    return Reading((), problems, key, (key,) if key else (), unnamed=True)


def _distinct(
    file: str, found: Sequence[Document], readings: Sequence[Reading]
) -> tuple[tuple[Sourced, ...], tuple[Problem, ...]]:
    """Collect a file's good objects, of equal keys the first, and its problems."""
    good: dict[ObjectKey, Sourced] = {}
    problems = [problem for reading in readings for problem in reading.problems]
    for document, reading in zip(found, readings, strict=True):
        origin = Origin(file, document.number, document.line)
        for key, value in reading.objects:
            sourced = Sourced(key, value, origin)
            first = good.setdefault(_claim(key), sourced)
            if first is not sourced:
                problems.append(_duplicate(sourced, first.key, first.origin))
    return tuple(good.values()), tuple(problems)


def _with_last_good(form: FileForm, held: Sequence[Sourced], readings: Sequence[Reading]) -> FileForm:
    """Add the last good forms of what is meant to be there and could not be read."""
    refused = {_claim(key) for reading in readings for key in reading.refused}
    unnamed = any(reading.unnamed for reading in readings)
    here = {_claim(sourced.key) for sourced in form.objects}
    named = {_claim(reading.key) for reading in readings if reading.key}
    kept, problems = [], list(form.problems)
    for sourced in held:
        claim = _claim(sourced.key)
        if claim in here:
            continue
        if claim in refused:
            kept.append(replace(sourced, stale=True))
        elif unnamed and claim not in named:
            kept.append(replace(sourced, stale=True))
            problems.append(_held(sourced))
    objects = sorted((*form.objects, *kept), key=lambda sourced: sourced.origin)
    return FileForm(form.digest, tuple(objects), tuple(problems))


def _held(sourced: Sourced) -> Problem:
    expected = "is kept as it was: a document of its file cannot be read; mend or remove that document"
    return Problem(str(Code.HELD), Severity.WARNING, sourced.origin, sourced.key, "", "", expected)


def _stale(objects: Sequence[Sourced]) -> tuple[Sourced, ...]:
    return tuple(replace(sourced, stale=True) for sourced in objects)
