"""Tests of logs: JSON outside a terminal, and no secrets."""

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
def test_lines_outside_a_terminal_are_json() -> None:
    """Our lines and those of libraries are one JSON object each, with secrets replaced.

    Lines below the level are dropped.
    """
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
def test_level_debug_applies_to_libraries_only_by_name() -> None:
    """The root level "debug" applies to our loggers; a library's debug lines need its own name."""
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
def test_traceback_has_no_local_variables(style: LogFormat) -> None:
    """Local variables are not logged, because a key can be one of them."""
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
def test_traceback_in_json_is_text_without_keys(name: str) -> None:
    """The traceback of our loggers and of libraries has the place and the message, with keys replaced."""
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
def test_process_and_place_of_a_line_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process and the calling place are not looked up. Hundreds of lines can be written per second."""
    configure(LogLevel.INFO, LogFormat.AUTO, stream := io.StringIO())
    asked: list[str] = []
    monkeypatch.setattr(os, "getpid", lambda: asked.append("process"))
    monkeypatch.setattr("structlog.stdlib._find_first_app_frame_and_name", lambda *_: asked.append("place"))
    logger = structlog.get_logger("ours")
    logger.info("said")
    assert (stream.getvalue().count("said"), asked) == (1, [])


@pytest.mark.usefixtures("_restored")
def test_our_lines_need_no_log_record_and_have_the_form_of_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only libraries' lines create a LogRecord. All lines are written in order, in the same form."""
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
    for item in (ours, library, *again):
        del item["timestamp"]
    assert made == ["library", "library"]
    assert library == {"event": "said", "level": "warning", "logger": "library"}
    assert ours == {"at": "{1, 2}", "event": "said", "level": "warning", "logger": "ours", "of": "info"}
    assert again == [ours, library]


@pytest.mark.usefixtures("_restored")
def test_levels_of_the_standard_library_apply_to_our_loggers() -> None:
    """A level that is set later on a package applies to our loggers."""
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
def test_failed_write_of_a_line_raises_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The failure is printed to standard error as by the library's handlers, and the next line is tried."""
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
def test_control_characters_are_escaped_in_the_console_format(stream: type[io.StringIO]) -> None:
    """Text of others cannot control the terminal or begin a line. Only our own colour codes are written."""
    hostile, written = "a\x1b[2J\x9b1m\u202e\r\nFORGED", stream()
    configure(LogLevel.INFO, LogFormat.CONSOLE, written)
    structlog.get_logger("ours").warning(hostile, path=hostile, of={hostile: [hostile]})
    logging.getLogger("library").warning("said %s", hostile)
    try:
        raise ValueError(hostile)
    except ValueError:
        structlog.get_logger("ours").exception("failed")
    plain = re.sub(r"\x1b\[(0|1|2|[34]\d)m", "", written.getvalue())
    assert {item for item in plain if not item.isprintable()} == {"\n"}
    shown = r"a\x1b[2J\x9b1m\u202e\x0d\x0aFORGED"
    first, second, third, *_ = plain.splitlines()
    assert (first.count(shown), second.count(shown)) == (2, 1)
    assert "failed" in third


def test_secrets_are_replaced_by_name_and_by_content() -> None:
    """Secrets are replaced in nested values too, and other values are kept."""
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
