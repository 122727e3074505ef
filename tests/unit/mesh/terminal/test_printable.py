"""Text of others as a terminal may show it, and streams that let nothing else through."""

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
def test_what_steers_a_terminal_is_escaped(text: str, shown: str) -> None:
    """C0 and C1 controls, DEL, and marks that turn, hide or break text; letters of all scripts stay."""
    assert (printable(text), on_one_line(text)) == (shown, shown)


def test_newlines_stay_where_lines_are_wanted() -> None:
    """And only there."""
    assert printable("a\n\x1bb\n") == "a\n\\x1bb\n"
    assert on_one_line("a\n\x1bb\n") == r"a\x0a\x1bb\x0a"


@given(st.text())
def test_a_stream_lets_nothing_else_through(text: str) -> None:
    """Whoever writes to it; with colours theirs alone."""
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
    assert all(each.isprintable() or each == "\n" for each in left)


def test_titles_and_clipboards_are_no_colours() -> None:
    """OSC and DCS are escaped even for rich."""
    raw = io.BytesIO()
    styled(stream := ScreenedStream(raw, encoding="utf-8")).write(
        "\x1b]52;c;YQ==\x07\x1b[1mx\x1b[0m\x1bPq\x9b1m"
    )
    stream.flush()
    assert raw.getvalue().decode() == "\\x1b]52;c;YQ==\\x07\x1b[1mx\x1b[0m\\x1bPq\\x9b1m"


def test_another_stream_is_taken_for_colours_as_it_is() -> None:
    """Such as a file that a test gives."""
    stream = io.StringIO()
    assert styled(stream) is stream
