"""What others write to standard error, as JSON."""

import json
from datetime import UTC, datetime

from controller.process.native_lines import as_entry, copy

AT = datetime(2026, 1, 2, tzinfo=UTC)


def test_a_line_of_absl_has_its_level_and_place() -> None:
    """Anything else is a warning as it stands."""
    line = "I0000 00:00:1763805600.1    4711 chttp2_transport.cc:1] seen"
    assert as_entry(line) == {
        "source": "grpc",
        "level": "info",
        "event": "seen",
        "place": "chttp2_transport.cc:1",
    }
    words = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
    assert as_entry(words) == {"source": "stderr", "level": "warning", "event": words}


def test_lines_are_copied_whole_and_json_as_it_is() -> None:
    """Cut anywhere; empty lines are none; the last needs no end; what is endless comes in pieces."""
    text = b'one\n\n{"event": "two"}\n{three\n' + b"y" * 40_000 + b"\n\xfe"
    pieces = [text[at : at + 1000] for at in range(0, len(text), 1000)]
    out: list[bytes] = []
    copy(lambda: pieces.pop(0) if pieces else b"", out.append, lambda: AT)
    found = [json.loads(line) for line in b"".join(out).splitlines()]
    assert [each["event"] for each in found[:3]] == ["one", "two", "{three"]
    assert found[0]["timestamp"] == "2026-01-02T00:00:00Z"
    assert "".join(each["event"] for each in found[3:-1]) == "y" * 40_000
    assert found[-1]["event"] == "\\xfe"
