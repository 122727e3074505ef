"""Tests of the conversion of values to JSON, and of its refusal of unknown types."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certs.keys.material import PrivateKey
from meshwright.admin.jsonable import HANDFUL, Document, Json, is_handful, jsonable, pieces
from meshwright.mesh.config import TlsVersion
from tests.tools.hypothesis_profiles import examples


@dataclass(frozen=True)
class _Value:
    number: int
    when: datetime
    hidden: str = field(default="secret", repr=False)


def test_values_become_plain_json() -> None:
    """Dataclasses, enums, sets, paths and durations become plain JSON; fields without a repr are left out."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    value = {1: (_Value(1, when), TlsVersion.V1_3, timedelta(minutes=1), Path("/a"), frozenset({"b", "a"}))}
    assert jsonable(value) == {
        "1": [{"number": 1, "when": "2026-01-01T00:00:00.000Z"}, "TLSv1_3", 60.0, "/a", ["a", "b"]]
    }


@pytest.mark.parametrize("value", [PrivateKey(b"k"), b"bytes", object()])
def test_type_that_may_hide_a_secret_is_refused(value: object) -> None:
    """Keys, bytes and unknown types raise TypeError.

    A new field of such a type therefore fails in a test first.
    """
    with pytest.raises(TypeError, match=r"is not shown$"):
        jsonable([value])


@settings(max_examples=examples(5, fresh=160))
@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=20,
        ),
    ),
    st.integers(1, 8),
)
def test_document_in_pieces_equals_the_whole_document(document: Document, handful: int) -> None:
    """The joined pieces equal `json.dumps` of the document for any size of the pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meshwright.admin.jsonable.HANDFUL", handful)
        assert "".join(pieces(document)) == json.dumps(document)


def test_each_entry_of_a_long_list_is_a_piece() -> None:
    """Pieces of a long list are short, so that encoding releases the interpreter often."""
    entries: list[Json] = [{"cn": f"{number}.store.shop", "serial": "a" * 32} for number in range(1000)]
    result = list(
        pieces({"seconds": 1, "entries": entries, "by_name": {str(n): "b" * 60 for n in range(99)}})
    )
    assert (len(result) > 1000, max(map(len, result)) < 100) == (True, True)


def test_long_nested_list_is_written_in_short_pieces() -> None:
    """A long list deep in a document is written in short pieces.

    An example is a listener with a thousand filter chains.
    """
    chains: list[Json] = [{"match": {"port": number}, "filters": ["a" * 90]} for number in range(1000)]
    listener: Json = {"version": "1", "resource": {"name": "outbound", "filter_chains": chains}}
    document: Document = {
        "cn": "u.store.shop",
        "configuration": {"cluster": {}, "listener": {"out": listener}},
    }
    result = list(pieces(document))
    assert "".join(result) == json.dumps(document)
    assert (len(result) > 1000, max(map(len, result)) < 200) == (True, True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({str(number): number for number in range(HANDFUL - 1)}, True),
        ({str(number): number for number in range(HANDFUL)}, False),
        ([[] for _ in range(HANDFUL)], False),
        ({"deep": {"within": [None] * HANDFUL}}, False),
    ],
)
def test_handful_counts_nested_values(value: Json, expected: bool) -> None:
    """The size of a document is the number of its values, and containers count as values too."""
    assert is_handful(value) is expected
