"""Tests of the decoding of pages of lists, in any pieces, complete or malformed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.kube.errors import Nonsense, Reason
from meshwright.kube.pages import Page
from tests.tools.hypothesis_profiles import examples


def _page(*pieces: bytes) -> tuple[list[object], dict[str, object]]:
    page = Page()
    result = [item for piece in pieces for item in page.items(piece)]
    return [*result, *page.end()], page.rest


def test_items_are_returned_as_soon_as_they_are_complete() -> None:
    """No item waits for the end of its page."""
    page = Page()
    assert list(page.items(b'{"kind":"XList","items":[{"a":1},{"a"')) == [{"a": 1}]
    assert list(page.items(b':2},{"a":3}')) == [{"a": 2}, {"a": 3}]
    assert list(page.items(b"],")) == []
    assert list(page.items(b'"metadata":{}}')) == []
    assert list(page.end()) == []
    assert page.rest == {"kind": "XList", "metadata": {}}


def test_oversized_item_is_refused_before_its_end() -> None:
    """The limit bounds memory, even if the item never ends."""
    page = Page(longest=1000)
    assert list(page.items(b'{"kind":"XList","items":[{}, {"a":"')) == [{}]
    with pytest.raises(Nonsense, match="an object of a list is larger than") as caught:
        for _ in range(100):
            list(page.items(b"x" * 100))
    assert caught.value.reason is Reason.TOO_LARGE


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(40))
@given(
    st.lists(_JSON, max_size=4),
    st.dictionaries(
        st.text(max_size=4).filter(lambda name: name not in ("items", "kind")), _JSON, max_size=3
    ),
    st.sampled_from([None, 1, "\t"]),
    st.booleans(),
    st.data(),
)
def test_page_in_pieces_equals_the_whole_page(
    items: list[object], rest: dict[str, object], indent: int | str | None, first: bool, data: st.DataObject
) -> None:
    """The items and all other fields are those of the complete JSON document."""
    # Core kinds have their items last, other kinds have their fields in the order of names.
    whole = {"items": items, "kind": "XList", **rest} if first else {**rest, "kind": "XList", "items": items}
    body = json.dumps(whole, indent=indent, ensure_ascii=not first).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    pieces = [body[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert _page(*pieces) == (items, {"kind": "XList", **rest})


def test_null_items_are_an_empty_list() -> None:
    """Go encodes an empty list as null."""
    assert _page(b'{"kind":"ServiceList","items":null}') == ([], {"kind": "ServiceList", "items": None})


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"<html>", b"{", b'{"kind":"XList","items":[', b'{"kind":"XList","items":[{}',
     b'{"kind":"XList"} x', b'{"kind":"XList","items":[{},]}', b'{"kind":"XList","items":[{} {}]}',
     b'{"kind":"XList",}', b'{"items":[]}', b'{"kind":"Service","items":[]}', b'{"kind" "XList"}', b"\xff",
     b'{"kind":"XList","items":' + b"[" * 100_000],
)  # fmt: skip
def test_malformed_or_truncated_page_is_an_error(body: bytes) -> None:
    """The error is raised for whole pages and for single bytes."""
    with pytest.raises(Nonsense):
        _page(body)
    with pytest.raises(Nonsense):
        _page(*(bytes([number]) for number in body[:200]), body[200:])
