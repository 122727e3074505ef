"""Logs are JSON off a terminal, and hold no secret."""

import io
import json
import logging
import os
import re
from collections.abc import Iterator

import pytest
import structlog
from hpack import Encoder

from meshwright.controller.process.levels import LogLevels
from meshwright.controller.process.logs import LogFormat, LogLevel, configure, redact

PEM = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("_srcfile", "logThreads", "logProcesses", "logMultiprocessing"):
        monkeypatch.setattr(logging, name, getattr(logging, name))
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    yield
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()


@pytest.mark.usefixtures("_restored")
def test_lines_off_a_terminal_are_json_for_us_and_for_libraries() -> None:
    """One line, one object; below the level nothing."""
    stream = io.StringIO()
    configure(LogLevel.INFO, LogFormat.AUTO, stream)
    structlog.get_logger("ours").info("started", port=1, private_key="abc")
    structlog.get_logger("ours").debug("not written")
    logging.getLogger("library").warning("said %s", "so")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    for line in lines:
        del line["timestamp"]
    assert lines == [
        {"event": "started", "level": "info", "logger": "ours", "port": 1, "private_key": "[redacted]"},
        {"event": "said so", "level": "warning", "logger": "library"},
    ]


@pytest.mark.usefixtures("_restored")
def test_the_level_debug_is_of_our_lines_and_not_of_each_step_of_a_library() -> None:
    """Of whichever library, when the level is told and when it is set later; unless its logger is named."""
    stream = io.StringIO()
    configure(LogLevel.DEBUG, LogFormat.JSON, stream)
    LogLevels().set_level("", "debug")
    encode = Encoder().encode
    encode([("authorization", "Bearer x")])
    structlog.get_logger("ours").debug("written")
    logging.getLogger("library.part").info("written too")
    logging.getLogger("envoy").debug("as its own level says")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == [
        "written",
        "written too",
        "as its own level says",
    ]
    LogLevels().set_level("hpack", "debug")
    encode([("accept", "x")])
    assert '"logger": "hpack.hpack"' in stream.getvalue()
    LogLevels().set_level("hpack", None)


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize("style", [LogFormat.JSON, LogFormat.CONSOLE])
def test_a_traceback_shows_no_local_variables(style: LogFormat) -> None:
    """A key is a local variable wherever it is used."""
    stream = io.StringIO()
    configure(LogLevel.INFO, style, stream)
    local = "".join(("very", "secret"))
    try:
        raise ValueError(f"of {len(local)} characters")
    except ValueError:
        structlog.get_logger("ours").exception("failed")
    assert "ValueError: of 10 characters" in stream.getvalue()
    assert "verysecret" not in stream.getvalue()


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize("name", ["ours", "library"])
def test_a_json_line_has_its_traceback_as_text_without_keys(name: str) -> None:
    """Of ours and of libraries': where it was raised, and what it says but for the key in it."""
    stream = io.StringIO()
    configure(LogLevel.INFO, LogFormat.JSON, stream)
    try:
        raise ValueError(f"cannot read {PEM}it is of 1999")
    except ValueError:
        if name == "ours":
            structlog.get_logger(name).exception("failed", doing="a wave")
        else:
            logging.getLogger(name).exception("failed")
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert "exc_info" not in line
    lines = line["exception"].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "test_logs.py" in lines[1]
    assert lines[-2:] == ["ValueError: cannot read [redacted]", "it is of 1999"]
    assert (line["event"], line["level"], line["logger"]) == ("failed", "error", name)


@pytest.mark.usefixtures("_restored")
def test_what_no_line_shows_is_not_asked_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the process nor the place: hundreds of lines are written in a second."""
    configure(LogLevel.INFO, LogFormat.AUTO, stream := io.StringIO())
    asked: list[str] = []
    monkeypatch.setattr(os, "getpid", lambda: asked.append("process"))
    monkeypatch.setattr("structlog.stdlib._find_first_app_frame_and_name", lambda *_: asked.append("place"))
    logger = structlog.get_logger("ours")
    logger.info("said")
    assert (stream.getvalue().count("said"), asked) == (1, [])


@pytest.mark.usefixtures("_restored")
def test_our_lines_are_written_without_a_record_of_each_and_libraries_in_the_same_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted: what is said to us and by a library stands in the same stream, in order, in one form."""
    made: list[str] = []
    record = logging.Logger.makeRecord

    def counted(self: logging.Logger, name: str, *rest: object) -> logging.LogRecord:
        made.append(name)
        return record(self, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(logging.Logger, "makeRecord", counted)
    configure(LogLevel.INFO, LogFormat.JSON, stream := io.StringIO())
    for _ in range(2):
        structlog.get_logger("ours").warning("said", of=LogLevel.INFO, at={1, 2})
        logging.getLogger("library").warning("said")
    ours, library, *again = map(json.loads, stream.getvalue().splitlines())
    for each in (ours, library, *again):
        del each["timestamp"]
    assert made == ["library", "library"]
    assert library == {"event": "said", "level": "warning", "logger": "library"}
    assert ours == {"at": "{1, 2}", "event": "said", "level": "warning", "logger": "ours", "of": "info"}
    assert again == [ours, library]


@pytest.mark.usefixtures("_restored")
def test_our_levels_are_those_of_the_standard_library_as_they_are_set_later() -> None:
    """Of one logger, of a package, and of all."""
    configure(LogLevel.INFO, LogFormat.JSON, stream := io.StringIO())
    logger = structlog.get_logger("of_ours.part")
    package = logging.getLogger("of_ours")
    try:
        package.setLevel(logging.DEBUG)
        logger.debug("first")
        package.setLevel(logging.ERROR)
        logger.warning("second")
    finally:
        package.setLevel(logging.NOTSET)
    logger.info("third")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["first", "third"]


class _Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


@pytest.mark.usefixtures("_restored")
def test_a_line_that_cannot_be_written_ends_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    """It is reported as the library's own handlers do it, and the next is tried as well."""
    configure(LogLevel.INFO, LogFormat.JSON, _Full())
    structlog.get_logger("ours").info("said")
    assert "No space left on device" in capsys.readouterr().err
    structlog.get_logger("ours").info("said again")
    assert "No space left on device" in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize("stream", [io.StringIO, _Terminal])
def test_in_lines_for_people_nothing_of_others_steers_their_terminal(stream: type[io.StringIO]) -> None:
    """Of our lines and the libraries': each is one line, and colours are ours alone."""
    hostile, written = "a\x1b[2J\x9b1m\u202e\r\nFORGED", stream()
    configure(LogLevel.INFO, LogFormat.CONSOLE, written)
    structlog.get_logger("ours").warning(hostile, path=hostile, of={hostile: [hostile]})
    logging.getLogger("library").warning("said %s", hostile)
    try:
        raise ValueError(hostile)
    except ValueError:
        structlog.get_logger("ours").exception("failed")
    plain = re.sub(r"\x1b\[(0|1|2|[34]\d)m", "", written.getvalue())
    assert {each for each in plain if not each.isprintable()} == {"\n"}
    shown = r"a\x1b[2J\x9b1m\u202e\x0d\x0aFORGED"
    first, second, third, *_ = plain.splitlines()
    assert (first.count(shown), second.count(shown)) == (2, 1)
    assert "failed" in third


def test_secrets_are_replaced_by_name_and_by_look() -> None:
    """In nested values too; the rest stays."""
    event: dict[str, object] = {
        "event": "e",
        "nested": {"ca_key": 1, "ok": [PEM, "x"]},
        "raw": PEM.encode(),
        "Secret": "s",
        "key": "Service a/b",
    }
    assert redact(None, "info", event) == {
        "event": "e",
        "nested": {"ca_key": "[redacted]", "ok": ["[redacted]", "x"]},
        "raw": "[redacted]",
        "Secret": "[redacted]",
        "key": "Service a/b",
    }
