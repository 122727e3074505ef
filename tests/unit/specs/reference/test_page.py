"""docs/reference.md and docs/schemas are what the program makes of its readers: nothing unsaid or made up."""

from pathlib import Path

import pytest

from meshwright.cli.offline import reference
from meshwright.mesh.kinds import UDP_ROUTE, Kind
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
from tests.unit.specs.reference.probing import DESCRIBED, instances

DOCS = ROOT / "docs"
EXAMPLES = [(kind, each) for kind in KINDS for each in documents(reference.text_of(kind))]


def test_the_page_is_what_the_program_makes() -> None:
    """`meshwright schema --page > docs/reference.md` mends it."""
    assert (DOCS / "reference.md").read_text("utf-8") == reference.page()


def test_the_schemas_are_what_the_program_makes(tmp_path: Path) -> None:
    """`meshwright schema --directory docs/schemas` mends them; none is left of a kind that is no more."""
    reference.write(tmp_path)
    made = {each.name: each.read_text("utf-8") for each in tmp_path.iterdir()}
    assert {each.name: each.read_text("utf-8") for each in (DOCS / "schemas").iterdir()} == made


def test_every_kind_that_is_read_is_there() -> None:
    """But for that which is refused, whatever it says."""
    assert set(KINDS) == set(READ) - {UDP_ROUTE}


@DESCRIBED
def test_every_field_has_an_example(described: DescribedKind) -> None:
    """In some version; what is a mapping, or a list of such, has the example of what stands in it."""
    fields = [each for shape in described.shapes for each in walked(shape.body)]
    shown = {each.place for each in fields if each.example is not None}
    assert {each.place for each in fields} == shown
    assert all(row.meaning.endswith(".") and row.what and row.default for row in rows(described))


@DESCRIBED
def test_a_field_that_is_read_and_not_named_is_found(
    described: DescribedKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has a reader ask for one more says what it means, or there is no page."""
    purpose, meanings = KINDS[described.kind]
    own = [place for place in meanings if place != "metadata.name"]  # which has a meaning for all kinds
    for place in {*own[:1], *own[-1:]}:
        fewer = {name: meaning for name, meaning in meanings.items() if name != place}
        monkeypatch.setattr(asking, "KINDS", {described.kind: (purpose, fewer)})
        with pytest.raises(LookupError, match="is read, but its meaning is missing"):
            asking.described(described.kind, described.examples)


def test_a_field_that_is_named_and_not_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes a field from a reader takes its meaning away too."""
    first = reference.described()[0]
    purpose, meanings = KINDS[first.kind]
    more = {**meanings, "spec.nothing": Meaning("Nothing.")}
    monkeypatch.setattr(asking, "KINDS", {first.kind: (purpose, more)})
    with pytest.raises(LookupError, match=r"spec\.nothing of Workload .* is not read"):
        asking.described(first.kind, first.examples)


@pytest.mark.parametrize(
    ("kind", "document"), EXAMPLES, ids=[f"{kind}-{each.number}" for kind, each in EXAMPLES]
)
def test_every_example_is_read_without_a_problem(kind: Kind, document: Document) -> None:
    """Neither error nor warning; that something is not used may be said."""
    assert document.faults == ()
    found = read(document.value, FromSource("test"))
    assert found.key is not None
    assert found.key.kind == kind
    assert [each for each in found.problems if each.severity is not Severity.INFO] == []


@DESCRIBED
def test_what_is_said_to_hold_without_a_field_does(described: DescribedKind) -> None:
    """An object is the same with the default written out, where that can be written, as without the field."""
    by_place = {each.place: each for shape in described.shapes for each in walked(shape.body)}
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
            if not {each.code for each in absent.problems} & {"MW1016", "MW1018"}:  # it must be what it is
                assert (place, absent.objects) == (place, explicit.objects)
