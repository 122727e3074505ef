"""What comes over the wire, in whatever pieces, whole or broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.kube.errors import Nonsense, Reason
from meshwright.kube.streams import Lines, event, value


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
