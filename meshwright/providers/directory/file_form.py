"""What one file holds, read from its text, given what it held before."""

import hashlib
from dataclasses import dataclass

from meshwright.mesh.origins import InFile, Origin
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.problems.tally import Tally
from meshwright.providers.objects import Form, read_form, unreadable
from meshwright.providers.text.documents import Document, documents
from meshwright.specs.codes import Code
from meshwright.specs.reader import ManifestReading, UnreadManifest, key_meant, read


@dataclass(frozen=True, slots=True)
class UnreadableFile:
    """A file that is there and whose text cannot be had; what it held stays in force."""

    code: Code
    expected: str


Content = str | UnreadableFile | None
"""A file's text, why it cannot be had, or None if the file is gone."""


def read_file(file: str, content: str | UnreadableFile, before: Form | None) -> Form:
    """Read a file's content, given what it held before: the very same for the same text."""
    if isinstance(content, UnreadableFile):
        return unreadable(
            Problem(
                code=str(content.code),
                severity=Severity.ERROR,
                origin=InFile(file),
                expected=content.expected,
            ),
            before,
        )
    digest = hashlib.sha256(content.encode()).hexdigest()
    if before is not None and before.mark == digest:
        return before
    found = documents(content, as_json=file.endswith(".json"))
    places = (InFile(file, document.number, document.line) for document in found)
    tally = Tally()
    readings: list[tuple[Origin, ManifestReading]] = [
        (place, _read(place, document, tally)) for place, document in zip(places, found, strict=True)
    ]
    if rest := tally.rest(InFile(file), None, "in this file"):
        readings.append((InFile(file), ManifestReading(problems=rest)))
    return read_form(digest, readings, before)


def _read(place: InFile, document: Document, tally: Tally) -> ManifestReading:
    """Read one document; with faults it only says which object it means, if that can be told.

    Two documents that ran into one, because the line between them was lost, show as a fault as well:
    therefore a document with faults may always stand for more than it names.
    """
    if not document.faults:
        return read(document.value, place, tally)
    key = key_meant(document.value)
    problems = tuple(
        Problem(
            code=str(fault.code),
            severity=Severity.ERROR,
            origin=InFile(place.path, place.document, fault.line),
            key=key,
            expected=fault.expected,
        )
        for fault in document.faults
        if tally.admits(str(fault.code), Severity.ERROR, fault.more)
    )
    mark = hashlib.sha256(document.text.encode()).hexdigest()
    named = () if key is None else (UnreadManifest(key, mark),)
    return ManifestReading(problems=problems, unread=(*named, UnreadManifest(None, mark)))
