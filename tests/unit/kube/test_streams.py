"""Tests of the decoding of streams: lines in any pieces, events and objects, complete or malformed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.kube.errors import Nonsense, Reason
from meshwright.kube.streams import Lines, event, value


@given(st.lists(st.binary(max_size=20).filter(lambda item: b"\n" not in item), max_size=8), st.data())
def test_lines_are_the_same_in_any_pieces(lines: list[bytes], data: st.DataObject) -> None:
    """The cuts between received pieces do not change the complete lines."""
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    cutter, result = Lines(), list[bytes]()
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        result += cutter.complete(whole[begin:end])
    assert result == [line for line in lines if line]
    assert not cutter.begun


def test_incomplete_line_is_kept_until_its_rest_arrives() -> None:
    """A line is returned once its line feed has arrived."""
    cutter = Lines()
    assert cutter.complete(b'{"a"') == []
    assert cutter.begun
    assert cutter.complete(b":1}\n{") == [b'{"a":1}']
    assert cutter.begun


@pytest.mark.parametrize("pieces", [[b"x" * 101 + b"\n"], [b"x" * 60, b"x" * 60]])
def test_oversized_line_is_refused_before_its_end(pieces: list[bytes]) -> None:
    """The limit bounds memory, even if no line feed ever arrives."""
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
def test_malformed_event_is_an_error_with_a_short_excerpt(line: bytes) -> None:
    """The message has fewer than 400 characters, however long the line is."""
    with pytest.raises(Nonsense) as caught:
        event(line)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_answer_that_is_no_json_object_is_an_error(body: bytes) -> None:
    """Every answer of an API server is a JSON object."""
    with pytest.raises(Nonsense):
        value(body)
