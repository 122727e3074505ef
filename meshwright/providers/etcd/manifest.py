"""Reader for the value of one key: one manifest, of the object that the key names."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from meshwright.etcd.values import KeyValue
from meshwright.mesh.objects import ObjectKey, created_at, created_of
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.providers.etcd.names import FORM, ObjectNames
from meshwright.providers.objects import Form, read_form, unreadable
from meshwright.providers.text.documents import Document, documents
from meshwright.specs.codes import Code
from meshwright.specs.reader import ManifestReading, UnreadManifest, key_meant, read

SOURCE: Final = "etcd"
"""Name of the source, for people."""

LARGEST: Final = 1024 * 1024
"""Limit of a manifest in bytes: etcd refuses requests above 1.5 MiB by default."""


def read_value(names: ObjectNames, item: KeyValue, before: Form | None) -> Form:
    """Return the objects and problems in a value; `before` is the key's previous form.

    Of two objects the one whose key was created first is older, as by `metadata.creationTimestamp`. A
    manifest with this field keeps its time, and counts as older than all without.
    """
    place = FromSource(SOURCE, names.shown(item.key))
    key = names.object_of(item.key)
    if key is None:
        expected = f"must be {FORM}, for example objects/core/Service/shop/web; remove the key"
        return unreadable(_problem(Code.WRONG_KEY, place, None, expected), before)
    if len(item.value) > LARGEST:
        expected = f"must have at most {LARGEST} bytes; has {len(item.value)}"
        return unreadable(_problem(Code.TOO_LARGE, place, key, expected), before)
    try:
        text = item.value.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        expected = f"must be UTF-8 text; the byte at offset {error.start} is not"
        return unreadable(_problem(Code.NOT_TEXT, place, key, expected), before)
    mark = hashlib.sha256(item.value).hexdigest()
    reading = _reading(place, key, documents(text), mark)
    created = f"revision {item.created:020}"
    aged = tuple((each, created_at(value, created_of(value) or created)) for each, value in reading.objects)
    return read_form(mark, [(place, replace(reading, objects=aged))], before)


def _reading(place: FromSource, key: ObjectKey, found: tuple[Document, ...], mark: str) -> ManifestReading:
    if len(found) != 1:
        expected = f"must be one manifest, of {key}; has {len(found)} documents"
        return _refused(key, mark, _problem(Code.WRONG_KEY, place, key, expected))
    (document,) = found
    if document.faults:
        return _refused(key, mark, *_faults(place, key, document))
    meant, reading = key_meant(document.value), read(document.value, place)
    of = {each for each, _ in reading.objects} or ({meant} if meant is not None else set())
    if of and of != {key}:
        others = ", ".join(sorted(map(str, of - {key})))
        expected = f"must be the manifest of {key}, which the key names; is that of {others}"
        return _refused(key, mark, _problem(Code.WRONG_KEY, place, key, expected))
    return reading


def _refused(key: ObjectKey, mark: str, *problems: Problem) -> ManifestReading:
    """Return a reading without objects, so that the last good form of the object stays in force."""
    return ManifestReading(problems=problems, unread=(UnreadManifest(key, mark),))


def _faults(place: FromSource, key: ObjectKey, document: Document) -> Iterator[Problem]:
    for fault in document.faults:
        yield _problem(fault.code, place, key, f"line {fault.line} {fault.expected}")


def _problem(code: Code, place: FromSource, key: ObjectKey | None, expected: str) -> Problem:
    return Problem(code=str(code), severity=Severity.ERROR, origin=place, key=key, expected=expected)
