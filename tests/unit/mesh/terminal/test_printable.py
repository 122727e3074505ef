"""Tests of escaping foreign text for terminals, and of streams that escape all output."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.terminal.printable import on_one_line, printable
from meshwright.mesh.terminal.screened_stream import ScreenedStream, styled


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("shop/cart é 日本 🙂 ✓ │", "shop/cart é 日本 🙂 ✓ │"),
        ("\x1b[31m\x07\x08\r\t\x00\x7f", r"\x1b[31m\x07\x08\x0d\x09\x00\x7f"),
        ("\x9b2J\x90\x85", r"\x9b2J\x90\x85"),
        ("\u202eabc\u2066\u200f\u200b\ufeff", r"\u202eabc\u2066\u200f\u200b\ufeff"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\udcff\U000e0041", r"\udcff\U000e0041"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    """C0 and C1 controls, DEL and marks that turn, hide or break text are escaped.

    Letters of all scripts stay.
    """
    assert (printable(text), on_one_line(text)) == (shown, shown)


def test_newlines_are_kept_in_text_and_escaped_in_a_line() -> None:
    """Text for a single line must not contain line breaks."""
    assert printable("a\n\x1bb\n") == "a\n\\x1bb\n"
    assert on_one_line("a\n\x1bb\n") == r"a\x0a\x1bb\x0a"


@given(st.text())
def test_stream_writes_only_printable_text(text: str) -> None:
    """The same holds for every writer; with colours, only colour sequences are added."""
    raw = io.BytesIO()
    stream = ScreenedStream(raw, encoding="utf-8", newline="\n")
    assert stream.write(text) == len(text)
    stream.writelines([text])
    stream.flush()
    assert raw.getvalue().decode() == printable(text) * 2
    raw.seek(0)
    raw.truncate()
    assert styled(stream).write(f"\x1b[1;31m{text}\x1b[0m") > 0
    stream.flush()
    left = re.sub(r"\x1b\[[?\d;]*[A-Za-z]|\r", "", raw.getvalue().decode())
    assert all(item.isprintable() or item == "\n" for item in left)


def test_title_and_clipboard_sequences_are_escaped() -> None:
    """OSC and DCS sequences are escaped even in a stream with colours."""
    raw = io.BytesIO()
    styled(stream := ScreenedStream(raw, encoding="utf-8")).write(
        "\x1b]52;c;YQ==\x07\x1b[1mx\x1b[0m\x1bPq\x9b1m"
    )
    stream.flush()
    assert raw.getvalue().decode() == "\\x1b]52;c;YQ==\\x07\x1b[1mx\x1b[0m\\x1bPq\\x9b1m"


def test_other_stream_is_returned_unchanged_for_colours() -> None:
    """A test may write to such a stream, for example."""
    stream = io.StringIO()
    assert styled(stream) is stream
