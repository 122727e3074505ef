"""Values become JSON, and what is not known does not."""

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


def test_values_become_their_plainest_form() -> None:
    """Nested dataclasses, enums, sets, durations; fields without a repr stay out."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    value = {1: (_Value(1, when), TlsVersion.V1_3, timedelta(minutes=1), Path("/a"), frozenset({"b", "a"}))}
    assert jsonable(value) == {
        "1": [{"number": 1, "when": "2026-01-01T00:00:00.000Z"}, "TLSv1_3", 60.0, "/a", ["a", "b"]]
    }


@pytest.mark.parametrize("value", [PrivateKey(b"k"), b"bytes", object()])
def test_what_may_hide_a_secret_is_refused(value: object) -> None:
    """A new field of such a type fails here, not in a browser."""
    with pytest.raises(TypeError, match=r"is not shown$"):
        jsonable([value])


@settings(max_examples=examples(15, fresh=160))
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
def test_a_document_is_written_in_pieces_as_it_is_at_once(document: Document, handful: int) -> None:
    """Byte for byte, however little of it is written at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meshwright.admin.jsonable.HANDFUL", handful)
        assert "".join(pieces(document)) == json.dumps(document)


def test_of_a_long_list_each_entry_is_a_piece() -> None:
    """No longer than that the interpreter is kept to oneself."""
    entries: list[Json] = [{"cn": f"{number}.store.shop", "serial": "a" * 32} for number in range(1000)]
    found = list(pieces({"seconds": 1, "entries": entries, "by_name": {str(n): "b" * 60 for n in range(99)}}))
    assert (len(found) > 1000, max(map(len, found)) < 100) == (True, True)


def test_of_what_is_long_within_each_handful_is_a_piece() -> None:
    """A listener with a chain for each of a thousand services, among all that one proxy has."""
    chains: list[Json] = [{"match": {"port": number}, "filters": ["a" * 90]} for number in range(1000)]
    listener: Json = {"version": "1", "resource": {"name": "outbound", "filter_chains": chains}}
    document: Document = {
        "cn": "u.store.shop",
        "configuration": {"cluster": {}, "listener": {"out": listener}},
    }
    found = list(pieces(document))
    assert "".join(found) == json.dumps(document)
    assert (len(found) > 1000, max(map(len, found)) < 200) == (True, True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({str(number): number for number in range(HANDFUL - 1)}, True),
        ({str(number): number for number in range(HANDFUL)}, False),
        ([[] for _ in range(HANDFUL)], False),
        ({"deep": {"within": [None] * HANDFUL}}, False),
    ],
)
def test_a_handful_is_so_many_values_however_they_lie(value: Json, expected: bool) -> None:
    """What holds values is one as well."""
    assert is_handful(value) is expected
