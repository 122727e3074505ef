"""Manifests for etcd in files: one document each, with the text that is stored."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from meshwright.cli.offline.mesh import manifest_files
from meshwright.mesh.origins import InFile
from meshwright.providers.directory.file_form import UnreadableFile
from meshwright.providers.text.documents import Document, documents
from meshwright.specs.reader import items_of


@dataclass(frozen=True, slots=True)
class Input:
    """One manifest: the place in its file, the value, and the content for etcd.

    `fault` is the reason why the document cannot be read, as a sentence; empty if it can.
    """

    place: InFile
    value: object = None
    content: bytes = field(default=b"", repr=False)
    fault: str = ""


def inputs(where: Path) -> Iterator[Input]:
    """Yield the manifests of a directory, a file, or `-` (standard input), in order; raise OfflineError.

    Each item of a list is a manifest of its own.
    """
    for name, content in manifest_files(where):
        if isinstance(content, UnreadableFile):
            yield Input(InFile(name), fault=content.expected)
        elif content is not None:
            for document in documents(content, as_json=name.endswith(".json")):
                yield from _of_document(name, document)


def _of_document(name: str, document: Document) -> Iterator[Input]:
    place = InFile(name, document.number, document.line)
    if document.faults:
        # One is enough: the others often follow from the first.
        first = document.faults[0]
        at = InFile(name, document.number, first.line)
        yield Input(at, document.value, fault=f"{first.expected} ({first.code})")
    elif (items := items_of(document.value)) is None:
        yield Input(place, document.value, document.text.rstrip().encode() + b"\n")
    else:
        for item in items:
            # The item's own text cannot be cut out of the list, because its indentation depends on the list.
            text = json.dumps(item, ensure_ascii=False, indent=2)
            yield Input(place, item, text.encode() + b"\n")
