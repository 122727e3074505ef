"""Format of log lines: JSON for programs, colours for people, and secrets removed in both.

JSON escapes control characters by itself. Lines for people are escaped here, because names, paths and
messages from others could otherwise contain commands for the terminal.
"""

import enum
import functools
import json
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from meshwright.mesh.terminal.printable import on_one_line, printable
from meshwright.mesh.terminal.screened_stream import styled

REDACTED: Final = "[redacted]"
_SECRET_WORDS: Final = frozenset({"secret", "secrets", "private", "password", "token", "pem"})
_PEM_MARK: Final = "PRIVATE KEY-----"
_PEM: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_TEXTS: Final = frozenset({"exception", "stack"})
"""Fields with text of many lines; a key is cut out of the text, and the rest stays."""


class LogLevel(enum.StrEnum):
    """Minimum severity of written lines."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(enum.StrEnum):
    """Format of log lines. AUTO is CONSOLE on a terminal and JSON elsewhere."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


@functools.lru_cache(maxsize=1024)
def _secret_name(name: str) -> bool:
    """Return whether a value under this name is removed. A plain `key` is an object's name, not a secret."""
    words = name.lower().split("_")
    return not _SECRET_WORDS.isdisjoint(words) or (len(words) > 1 and words[-1] in ("key", "keys"))


def _redacted(value: object) -> object:
    match value:
        case str():  # most frequent type first, because the check for a Mapping is the most expensive
            return REDACTED if _PEM_MARK in value else value
        case bytes():
            return REDACTED if _PEM_MARK.encode() in value else value
        case list() | tuple():
            return [_redacted(inner) for inner in value]
        case Mapping():
            return {
                name: REDACTED if _secret_name(str(name)) else _redacted(inner)
                for name, inner in value.items()
            }
        case _:
            return value


def redact(_logger: WrappedLogger, _method: str, event: MutableMapping[str, object]) -> EventDict:
    """Replace values with a secret's name or a PEM private key, also in mappings and sequences.

    This is the second line of defence. The first is that types of keys hide their bytes.
    """
    return {name: _field(name, value) for name, value in event.items()}


def _field(name: str, value: object) -> object:
    if name in _TEXTS and isinstance(value, str):
        return _PEM.sub(REDACTED, value)
    return REDACTED if _secret_name(name) else _redacted(value)


def is_json(style: LogFormat, stream: TextIO) -> bool:
    """Return whether lines to this stream are JSON."""
    return style is LogFormat.JSON or (style is LogFormat.AUTO and not stream.isatty())


_LEVELS: Final = {
    **{name.lower(): level for name, level in logging.getLevelNamesMapping().items()},
    "exception": logging.ERROR,
}
"""Levels by name of the logging method."""

_ENCODER: Final = json.JSONEncoder(sort_keys=True, default=repr)


def _as_json(_logger: WrappedLogger, _method: str, event: MutableMapping[str, object]) -> str:
    return _ENCODER.encode(event)


def for_people(stream: TextIO) -> tuple[Processor, ...]:
    """Return structlog processors to format a log line for people, with colours on a terminal."""
    return (_printable, structlog.dev.ConsoleRenderer(colors=stream.isatty()))


def _printable(_logger: WrappedLogger, _method: str, event: MutableMapping[str, object]) -> EventDict:
    """Escape control characters; line ends too, except in text of many lines."""
    return {
        name: (printable if name in _TEXTS else on_one_line)(value) if isinstance(value, str) else value
        for name, value in event.items()
    }


def _renderers(style: LogFormat, stream: TextIO) -> tuple[Processor, ...]:
    return (_as_json,) if is_json(style, stream) else for_people(stream)


class DirectLogger:
    """Logger for finished lines, written directly without a record for each.

    The level is the level of the standard library's logger of this name. An unwritable line is handled as in
    the standard library.
    """

    __slots__ = ("_handler", "is_enabled_for", "name")

    def __init__(self, name: str, handler: logging.StreamHandler[TextIO]) -> None:
        self.name = name
        self.is_enabled_for = logging.getLogger(name).isEnabledFor
        self._handler = handler

    def info(self, line: str) -> None:
        """Write a line of any level."""
        handler = self._handler
        handler.acquire()
        try:
            handler.stream.write(line + handler.terminator)
            handler.stream.flush()
        except Exception:  # noqa: BLE001 - as every handler does: logging must not end the caller
            handler.handleError(logging.makeLogRecord({"name": self.name, "msg": line}))
        finally:
            handler.release()

    debug = warning = error = critical = exception = info


def _at_level(logger: DirectLogger, method: str, event: EventDict) -> EventDict:
    """Drop lines below the logger's level; faster than structlog's own check, which asks all parents."""
    if not logger.is_enabled_for(_LEVELS[method]):
        raise structlog.DropEvent
    return event


def _wanted(record: logging.LogRecord) -> bool:
    """Return whether a library's record is written; debug records only for loggers with a level of their own.

    Our own lines are not records. Libraries write debug records of each step, with all handled data.
    """
    if record.levelno >= logging.INFO:
        return True
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None and logger.level == logging.NOTSET:
        logger = logger.parent
    return logger is not logging.getLogger()


def configure(level: LogLevel, style: LogFormat, stream: TextIO | None = None) -> None:
    """Write all lines, ours and the libraries', to `stream` (default: standard error) in one format."""
    target = styled(stream or sys.stderr)
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Before `redact`, which searches the text. Local variables are left out, because they include keys.
        structlog.processors.format_exc_info,
        redact,
    ]
    handler = logging.StreamHandler(target)
    handler.addFilter(_wanted)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(style, target),
            ],
        )
    )
    # Our lines have neither thread nor source line, so these are not determined for each record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - documented in the logging manual
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.value.upper())
    for chatty in ("aiohttp.access", "watchfiles"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("envoy").setLevel(logging.DEBUG)  # Envoy filters by its own level
    structlog.configure(
        processors=[
            _at_level,
            *shared,
            *_renderers(style, target),
        ],
        logger_factory=functools.cache(lambda name="": DirectLogger(name, handler)),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
