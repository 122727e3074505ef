"""Tests that docs/policy/reference.md and docs/policy/schemas equal the text generated from the readers."""

from pathlib import Path

import pytest

from meshwright.cli.offline import reference
from meshwright.mesh.kinds import CONFIG_MAP, SECRET, UDP_ROUTE, Kind
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Severity
from meshwright.providers.text.documents import Document, documents
from meshwright.specs.kinds import READ
from meshwright.specs.reader import read
from meshwright.specs.reference import probing as asking
from meshwright.specs.reference.meaning import Meaning
from meshwright.specs.reference.meanings.kinds import KINDS
from meshwright.specs.reference.page import rows
from meshwright.specs.reference.shapes import DescribedKind, walked
from tests.tools.forked_cli import ROOT
from tests.unit.specs.reference.document_places import DESCRIBED, instances

DOCS = ROOT / "docs"
EXAMPLES = [(kind, item) for kind in KINDS for item in documents(reference.text_of(kind))]


def test_reference_page_equals_the_generated_one() -> None:
    """`meshwright schema --page > docs/policy/reference.md` corrects it."""
    assert (DOCS / "policy" / "reference.md").read_text("utf-8") == reference.page()


def test_schema_files_equal_the_generated_ones(tmp_path: Path) -> None:
    """`meshwright schema --directory docs/policy/schemas` corrects them. Files of removed kinds fail."""
    reference.write(tmp_path)
    made = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert {path.name: path.read_text("utf-8") for path in (DOCS / "policy" / "schemas").iterdir()} == made


def test_every_kind_that_is_read_is_in_the_reference() -> None:
    """UDPRoute is left out, because it is always refused, and Secret and ConfigMap are Kubernetes' own."""
    assert set(KINDS) == set(READ) - {UDP_ROUTE, SECRET, CONFIG_MAP}


@DESCRIBED
def test_every_field_has_an_example_and_a_meaning(described: DescribedKind) -> None:
    """The example may be in any version; a mapping has the examples of its fields."""
    fields = [field for shape in described.shapes for field in walked(shape.body)]
    shown = {field.place for field in fields if field.example is not None}
    assert {field.place for field in fields} == shown
    assert all(row.meaning.endswith(".") and row.what and row.default for row in rows(described))


@DESCRIBED
def test_field_without_a_meaning_is_an_error(
    described: DescribedKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new field of a reader thus needs a meaning before the page can be generated.

    The examples are read as they are, and not once more without each field, which takes most of the time.
    """
    monkeypatch.setattr(asking._Answers, "_try", lambda *_: None)
    purpose, meanings = KINDS[described.kind]
    own = [place for place in meanings if place != "metadata.name"]  # this place has a meaning for all kinds
    for place in {*own[:1], *own[-1:]}:
        fewer = {name: meaning for name, meaning in meanings.items() if name != place}
        monkeypatch.setattr(asking, "KINDS", {described.kind: (purpose, fewer)})
        with pytest.raises(LookupError, match="is read, but its meaning is missing"):
            asking.described(described.kind, described.examples)


def test_meaning_of_an_unread_field_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that is removed from a reader thus loses its meaning too."""
    first = reference.described()[0]
    purpose, meanings = KINDS[first.kind]
    more = {**meanings, "spec.nothing": Meaning("Nothing.")}
    monkeypatch.setattr(asking, "KINDS", {first.kind: (purpose, more)})
    with pytest.raises(LookupError, match=r"spec\.nothing of Workload .* is not read"):
        asking.described(first.kind, first.examples)


@pytest.mark.parametrize(
    ("kind", "document"), EXAMPLES, ids=[f"{kind}-{item.number}" for kind, item in EXAMPLES]
)
def test_every_example_is_read_without_error_or_warning(kind: Kind, document: Document) -> None:
    """Information is allowed, for example about fields without effect."""
    assert document.faults == ()
    manifest_reading = read(document.value, FromSource("test"))
    assert manifest_reading.key is not None
    assert manifest_reading.key.kind == kind
    assert [problem for problem in manifest_reading.problems if problem.severity is not Severity.INFO] == []


@DESCRIBED
def test_documented_default_equals_the_omitted_field(described: DescribedKind) -> None:
    """An object with the default written out equals the object without the field."""
    by_place = {item.place: item for shape in described.shapes for item in walked(shape.body)}
    for example in described.examples:
        for document, place, mapping, name in instances(example):
            field = by_place.get(place)
            if field is None or field.required or not isinstance(mapping, dict):
                continue
            written = field.meaning.default
            default: object = field.default
            if default is None and written.startswith("`") and written.count("`") == 2 and written[-1] == "`":
                default = written.strip("`").strip('"')
            if default is None:
                continue
            was = mapping[name]
            mapping[name] = default
            explicit = read(document, FromSource("test"))
            del mapping[name]
            absent = read(document, FromSource("test"))
            mapping[name] = was
            if not {problem.code for problem in absent.problems} & {
                "MW1016",
                "MW1018",
            }:  # the field needs the example's value
                assert (place, absent.objects) == (place, explicit.objects)
