"""What one file holds: its objects in force and its problems, given what it held before."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mesh.objects import ObjectKey, Sourced
from mesh.origins import InFile
from mesh.problems import Problem, Problems, Severity
from providers.claims import duplicate, repeats
from providers.text.documents import Document, documents
from specs.codes import Code
from specs.reader import Reading, key_meant, read


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is there and whose text cannot be had; what it held stays in force."""

    code: Code
    expected: str


Content = str | Unreadable | None
"""A file's text, why it cannot be had, or None if the file is gone."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """What one file holds: its objects in force in document order, and its own problems.

    `digest` tells its text from others; it is empty where there is none.
    """

    digest: str
    objects: tuple[Sourced, ...]
    problems: Problems

    def by_claim(self) -> dict[ObjectKey, Sourced]:
        """Return its objects by the keys under which a source knows them."""
        return {sourced.key.claim: sourced for sourced in self.objects}


def read_file(file: str, content: str | Unreadable, before: FileForm | None) -> FileForm:
    """Read a file's content, given what it held before."""
    held = before.objects if before else ()
    if isinstance(content, Unreadable):
        problem = _file_problem(file, content.code, content.expected)
        return FileForm("", _stale(held), (problem,))
    digest = hashlib.sha256(content.encode()).hexdigest()
    if before is not None and before.digest == digest:
        return before
    found = documents(content, as_json=file.endswith(".json"))
    readings = [_read(file, document) for document in found]
    good, problems = _distinct(file, found, readings)
    return _with_last_good(FileForm(digest, good, problems), held, readings)


def _file_problem(file: str, code: Code, expected: str) -> Problem:
    return Problem(code=str(code), severity=Severity.ERROR, origin=InFile(file), expected=expected)


def _read(file: str, document: Document) -> Reading:
    """Read one document; with faults it only says which object it means, if it can be told.

    Two documents that ran into one, because the line between them was lost, show as a fault as well:
    therefore a document with faults may always stand for more than it names.
    """
    if not document.faults:
        return read(document.value, InFile(file, document.number, document.line))
    key = key_meant(document.value)
    problems = tuple(
        Problem(
            code=str(fault.code),
            severity=Severity.ERROR,
            origin=InFile(file, document.number, fault.line),
            key=key,
            expected=fault.expected,
        )
        for fault in document.faults
    )
    return Reading((), problems, key, (key,) if key else (), unnamed=True)


def _distinct(
    file: str, found: Sequence[Document], readings: Sequence[Reading]
) -> tuple[tuple[Sourced, ...], Problems]:
    """Collect a file's good objects, of equal keys the first, and its problems."""
    good: dict[ObjectKey, Sourced] = {}
    problems = [problem for reading in readings for problem in reading.problems]
    for document, reading in zip(found, readings, strict=True):
        origin = InFile(file, document.number, document.line)
        for key, value in reading.objects:
            sourced = Sourced(key, value, origin)
            first = good.setdefault(key.claim, sourced)
            if first is not sourced and not repeats(sourced, first):
                problems.append(duplicate(sourced, first.key, first.origin))
    return tuple(good.values()), tuple(problems)


def _with_last_good(form: FileForm, held: Sequence[Sourced], readings: Sequence[Reading]) -> FileForm:
    """Add the last good forms of what is meant to be there and could not be read."""
    refused = {key.claim for reading in readings for key in reading.refused}
    unnamed = any(reading.unnamed for reading in readings)
    here = {sourced.key.claim for sourced in form.objects}
    named = {reading.key.claim for reading in readings if reading.key}
    kept, problems = [], list(form.problems)
    for sourced in held:
        claim = sourced.key.claim
        if claim in here:
            continue
        if claim in refused:
            kept.append(replace(sourced, stale=True))
        elif unnamed and claim not in named:
            # A document that does not say what it is may be any of those that the others do not speak of.
            kept.append(replace(sourced, stale=True))
            problems.append(_held(sourced))
    objects = sorted((*form.objects, *kept), key=lambda sourced: sourced.origin.order)
    return FileForm(form.digest, tuple(objects), tuple(problems))


def _held(sourced: Sourced) -> Problem:
    expected = "is kept as it was: a document of its file cannot be read; mend or remove that document"
    return Problem(
        code=str(Code.HELD),
        severity=Severity.WARNING,
        origin=sourced.origin,
        key=sourced.key,
        expected=expected,
    )


def _stale(objects: Sequence[Sourced]) -> tuple[Sourced, ...]:
    return tuple(replace(sourced, stale=True) for sourced in objects)
