"""Derivation of shapes from examples: the readers show which fields the documents of a kind may have.

An example is read in every version that accepts it. To find out whether a field is required or may be empty,
the example is read without the field, and with an empty value. For example, a Workload without `spec.address`
is refused with MW1011 at this place, so the field is required.
"""

import copy
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.specs.codes import Code
from meshwright.specs.kinds import READ
from meshwright.specs.manifest import CLUSTER_WIDE, DEFAULT_NAMESPACE, Manifest, key_of, split_api_version
from meshwright.specs.notes import Notes
from meshwright.specs.own_names import check_own_names
from meshwright.specs.reference.meaning import LABEL, NAME, Meaning, Meanings
from meshwright.specs.reference.meanings.kinds import KINDS
from meshwright.specs.reference.recording import (
    AnyContent,
    Asked,
    Items,
    Ports,
    Record,
    Recorder,
    Text,
    Texts,
    place,
)
from meshwright.specs.reference.shapes import DescribedKind, Document, Field, MappingShape, Shape, walked

_ORIGIN: Final = FromSource("reference")
_INDEX: Final = re.compile(r"\[\d+\]")
_NO_FIELDS: Final = frozenset({"apiVersion", "kind"})
_NAME: Final = Meaning("The name of the object.", form=NAME)
_NAMED: Final = Meaning("The namespace of the object.", "`default`", LABEL)


def described(kind: Kind, examples: Sequence[Document]) -> DescribedKind:
    """Return the shape of a kind's documents.

    Raises LookupError for a version without an example, a field without a meaning, or a meaning of an unread
    field.
    """
    purpose, meanings = KINDS[kind]
    reader = READ[kind]
    mine = tuple(example for example in examples if _kind(example) == kind)
    result = [
        (api_version, _body(kind, _probe_answers(kind, version, mine), meanings))
        for version, api_version in zip(reader.versions, reader.api_versions, strict=True)
    ]
    read = {field.place for _, body in result for field in walked(body)}
    if unread := sorted(meanings.keys() - read):
        raise LookupError(f"{unread[0]} of {kind} is said to mean something, and is not read in any example")
    shapes = tuple(
        Shape(tuple(api_version for api_version, _ in same), body)
        for body, same in itertools.groupby(result, lambda pair: pair[1])
    )
    return DescribedKind(kind, purpose, shapes, mine)


def all_described(examples: Sequence[Document]) -> tuple[DescribedKind, ...]:
    """Return the shapes of all kinds' documents, in the order of the reference page."""
    return tuple(described(kind, examples) for kind in KINDS)


def _kind(document: Document) -> Kind:
    return Kind(str(document["kind"]), split_api_version(str(document["apiVersion"]))[0])


class _Answers:
    """Recorded calls and refusals of the reader of one kind and version, over all accepted examples."""

    def __init__(self) -> None:
        self.record = Record()
        self.required: set[str] = set()
        self.not_empty: set[str] = set()
        self.examples: dict[str, object] = {}

    def add(self, kind: Kind, version: str, document: Document) -> None:
        """Read an example; a refused example is ignored, because its reading ends early."""
        record = Record({"metadata": {"name": {Text()}, "namespace": {Text()}}})
        if _refusals(kind, version, document, record):
            return
        for parent, mapping in record.mappings:
            for name in [*mapping]:
                self._try(kind, version, document, (parent, mapping, name), record)
        self.record.add(record)

    def _try(
        self,
        kind: Kind,
        version: str,
        document: Document,
        at: tuple[str, dict[str, object], str],
        record: Record,
    ) -> None:
        parent, mapping, name = at
        where, value = place(parent, name), mapping.pop(name)
        if name in record.fields.get(parent, {}):
            self.examples.setdefault(where, value)
            without = Record()
            missing = _refusals(kind, version, document, without)
            # Without this field the reader may read another one instead, for example an older name.
            self.record.add(without)
            gone = [_INDEX.sub("[]", problem.field) for problem in missing if problem.code == Code.MISSING]
            if any(f"{item}.".startswith(f"{where}.") for item in gone):
                self.required.add(where)
            empty = _empty(record.field_types(parent, name))
            if empty is not None:
                mapping[name] = empty
                problems = _refusals(kind, version, document)
                if any(_INDEX.sub("[]", problem.field) == where for problem in problems):
                    self.not_empty.add(where)
        mapping[name] = value


def _empty(field_types: Collection[Asked]) -> object:
    for item in field_types:
        match item:
            case Text():
                return ""
            case Items() | Texts() | Ports():
                return []
            case _:
                pass
    return None


def _probe_answers(kind: Kind, version: str, examples: Sequence[Document]) -> _Answers:
    answers = _Answers()
    for example in examples:
        # A copy, because `_try` changes the document while it reads.
        answers.add(kind, version, copy.deepcopy(example))
    if not answers.record.fields:
        raise LookupError(f"no example is a {kind} of version {version}")
    return answers


def _refusals(
    kind: Kind, version: str, document: Document, record: Record | None = None
) -> tuple[Problem, ...]:
    """Return the errors that the reader of a version reports for a document."""
    notes = Notes(_ORIGIN)
    body = Recorder(document, "", notes, Record() if record is None else record)
    key = key_of(kind, document) or ObjectKey(kind, DEFAULT_NAMESPACE, "nameless")
    manifest = Manifest(key, version, body, body.section("metadata"), notes)
    READ[kind].read(manifest)
    check_own_names(manifest)
    return tuple(problem for problem in notes.problems if problem.severity is Severity.ERROR)


def _body(kind: Kind, answers: _Answers, meanings: Meanings) -> MappingShape:
    head = {"metadata": Meaning("The name, namespace, labels and annotations."), "metadata.name": _NAME}
    if kind not in CLUSTER_WIDE:
        head["metadata.namespace"] = _NAMED
    else:
        del answers.record.fields["metadata"]["namespace"]
    answers.required |= {"metadata", "metadata.name"}
    answers.not_empty.add("metadata.name")
    return _mapped("", answers, {**head, **meanings})


def _mapped(parent: str, answers: _Answers, meanings: Meanings) -> MappingShape:
    record = answers.record
    order = {where: index for index, where in enumerate(meanings)}
    names = sorted(record.fields.get(parent, {}), key=lambda name: order.get(place(parent, name), len(order)))
    asked = {name: record.field_types(parent, name) for name in names}
    untouched = tuple(sorted(name for name, item in asked.items() if item == (AnyContent(),)))
    return MappingShape(
        tuple(
            _field(parent, name, item, answers, meanings)
            for name, item in asked.items()
            if name not in untouched
        ),
        tuple(name for name in untouched if parent or name not in _NO_FIELDS),
        parent in record.closed,
        parent in record.pairs,
    )


def _field(
    parent: str, name: str, field_types: tuple[Asked, ...], answers: _Answers, meanings: Mapping[str, Meaning]
) -> Field:
    where = place(parent, name)
    if where not in meanings:
        raise LookupError(f"{where} is read, but its meaning is missing in specs/reference/meanings")
    return Field(
        where,
        name,
        field_types,
        meanings[where],
        where in answers.required,
        where in answers.not_empty,
        answers.examples.get(where),
        _mapped(where, answers, meanings),
        _mapped(f"{where}[]", answers, meanings),
    )
