"""What comes over the wire, in whatever pieces, whole or broken."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.errors import Nonsense, Reason
from kube.streams import Lines, Page, event, value


@given(st.lists(st.binary(max_size=20).filter(lambda each: b"\n" not in each), max_size=8), st.data())
def test_lines(lines: list[bytes], data: st.DataObject) -> None:
    """They are the same in whatever pieces they come."""
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    cutter, found = Lines(), list[bytes]()
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += cutter.complete(whole[begin:end])
    assert found == [line for line in lines if line]
    assert not cutter.begun


def test_half_a_line() -> None:
    """What is no complete line is kept until the rest comes."""
    cutter = Lines()
    assert cutter.complete(b'{"a"') == []
    assert cutter.begun
    assert cutter.complete(b":1}\n{") == [b'{"a":1}']
    assert cutter.begun


@pytest.mark.parametrize("pieces", [[b"x" * 101 + b"\n"], [b"x" * 60, b"x" * 60]])
def test_too_long(pieces: list[bytes]) -> None:
    """A line that is too long is given up, if need be before it ends."""
    cutter = Lines(longest=100)
    with pytest.raises(Nonsense) as caught:
        for piece in pieces:
            cutter.complete(piece)
    assert caught.value.reason is Reason.TOO_LARGE


@pytest.mark.parametrize(
    "line",
    [b"<html>", b"{", b"\xff\xfe", b"[]", b"1", b'"x"', b"{}", b'{"type": 1, "object": {}}',
     b'{"type": "ADDED"}', b'{"type": "ADDED", "object": []}', b"[" * 100_000, b"1" * 100_000],
)  # fmt: skip
def test_no_event(line: bytes) -> None:
    """A line that is no event is nonsense, and is shown in short."""
    with pytest.raises(Nonsense) as caught:
        event(line)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_no_object(body: bytes) -> None:
    """An answer that is no object is nonsense."""
    with pytest.raises(Nonsense):
        value(body)


def _page(body: bytes) -> tuple[list[object], dict[str, object]]:
    page = Page(body)
    return list(page.items()), page.rest


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(
    st.lists(_JSON, max_size=4),
    st.dictionaries(
        st.text(max_size=4).filter(lambda name: name not in ("items", "kind")), _JSON, max_size=3
    ),
    st.sampled_from([None, 1, "\t"]),
    st.booleans(),
)
def test_page(items: list[object], rest: dict[str, object], indent: int | str | None, first: bool) -> None:
    """Read item by item it is what it is read as a whole, wherever the items stand."""
    # Core kinds have their items last, other kinds have their fields in the order of names.
    whole = {"items": items, "kind": "XList", **rest} if first else {**rest, "kind": "XList", "items": items}
    assert _page(json.dumps(whole, indent=indent).encode()) == (items, {"kind": "XList", **rest})


def test_no_items() -> None:
    """Go has null for a list of nothing."""
    assert _page(b'{"kind":"ServiceList","items":null}') == ([], {"kind": "ServiceList", "items": None})


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"<html>", b"{", b'{"kind":"XList","items":[', b'{"kind":"XList","items":[{}',
     b'{"kind":"XList"} x', b'{"kind":"XList","items":[{},]}', b'{"kind":"XList","items":[{} {}]}',
     b'{"kind":"XList",}', b'{"items":[]}', b'{"kind":"Service","items":[]}', b'{"kind" "XList"}', b"\xff",
     b'{"kind":"XList","items":' + b"[" * 100_000],
)  # fmt: skip
def test_no_list(body: bytes) -> None:
    """What is no list, or not to its end, is nonsense."""
    with pytest.raises(Nonsense):
        _page(body)
