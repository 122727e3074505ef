"""The manifests of a source as one immutable state: what is in force, and what is wrong.

A file's new text changes only what that file holds. What is good is in force; an object whose newest form
is bad keeps its last good form, marked stale; an object is gone when its file, or a file all of whose
documents could be named, no longer holds it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mesh.endpoints import Inventory
from mesh.names import Namespace
from mesh.objects import EndpointSlice, ObjectKey, Origin, Problem, Severity, Sourced
from mesh.workload import Workload
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
    """All files of a source, sorted by name; equal files make equal states, in whatever order they came."""

    files: tuple[tuple[str, FileForm], ...] = ()

    def apply(self, file: str, content: Content) -> "Manifests":
        """Return the state with one file's new content, or without the file if that is None."""
        return self.apply_all({file: content})

    def apply_all(self, contents: Mapping[str, Content]) -> "Manifests":
        """Return the state with the new contents of several files at once."""
        forms = dict(self.files)
        for file, content in contents.items():
            if content is None:
                forms.pop(file, None)
            else:
                forms[file] = read_file(file, content, forms.get(file))
        return Manifests(tuple(sorted(forms.items())))

    def objects(self) -> dict[ObjectKey, Sourced]:
        """Return what is in force, sorted by key; of two with equal keys the first file's."""
        return {sourced.key: sourced for sourced in sorted(self._firsts().values(), key=_by_key)}

    def problems(self) -> tuple[Problem, ...]:
        """Return everything that is wrong, sorted by where it stands."""
        firsts = self._firsts()
        found = {problem for _, form in self.files for problem in form.problems}
        for _, form in self.files:
            for sourced in form.objects:
                first = firsts[_claim(sourced.key)]
                if first is not sourced:
                    found.add(_duplicate(sourced, first.key, first.origin))
        return tuple(sorted(found, key=_problem_order))

    def inventory(self) -> Inventory:
        """Return the workloads (Workloads and Pods) and endpoint slices in force."""
        values = [sourced.value for sourced in self._firsts().values()]
        workloads = (value for value in values if isinstance(value, Workload))
        slices = (value for value in values if isinstance(value, EndpointSlice))
        return Inventory(
            tuple(sorted(workloads, key=lambda workload: workload.key)),
            tuple(sorted(slices, key=lambda found: (found.namespace, found.name))),
        )

    def _firsts(self) -> dict[ObjectKey, Sourced]:
        found: dict[ObjectKey, Sourced] = {}
        for _, form in self.files:
            for sourced in form.objects:
                found.setdefault(_claim(sourced.key), sourced)
        return found


def _by_key(sourced: Sourced) -> ObjectKey:
    return sourced.key


def _claim(key: ObjectKey) -> ObjectKey:
    """Return the key under which a source knows an object: Pods are workloads, Endpoints are slices."""
    match key.kind:
        case "Pod":
            return replace(key, kind="Workload")
        case "Endpoints":
            return replace(key, kind="EndpointSlice")
        case _:
            return key


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
