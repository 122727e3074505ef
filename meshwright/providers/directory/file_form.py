"""Form of one manifest file: its objects and problems, given the file's previous form."""

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
    """A file that exists but cannot be read; the objects read from it before continue to apply."""

    code: Code
    expected: str


Content = str | UnreadableFile | None
"""A file's text, the reason why it cannot be read, or None for a removed file."""


def read_file(file: str, content: str | UnreadableFile, before: Form | None) -> Form:
    """Return the objects and problems in a file's content; `before` itself if the text is the same."""
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
    result = documents(content, as_json=file.endswith(".json"))
    places = (InFile(file, document.number, document.line) for document in result)
    tally = Tally()
    readings: list[tuple[Origin, ManifestReading]] = [
        (place, _read(place, document, tally)) for place, document in zip(places, result, strict=True)
    ]
    if rest := tally.rest(InFile(file), None, "in this file"):
        readings.append((InFile(file), ManifestReading(problems=rest)))
    return read_form(digest, readings, before)


def _read(place: InFile, document: Document, tally: Tally) -> ManifestReading:
    """Read one document. A document with faults only gives the key of its object, if that is readable.

    Two documents that have merged, because the separator between them was lost, show as a fault as well.
    Therefore a document with faults may also contain objects that it does not name.
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
