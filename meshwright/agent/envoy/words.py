"""Relay of Envoy's standard error into the agent's log."""

import logging
import re
from asyncio import StreamReader
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import structlog

_LONGEST: Final = 64 * 1024
"""Bytes of one log line; longer lines are split."""

# [2026-11-22 10:00:00.123][4711][warning][config] [source/common/config/grpc_stream.h:155] words
_LINE: Final = re.compile(r"\[[\d :.-]+\]\[\d+\]\[(\w+)\]\[([\w.-]+)\] (?:\[([^\]]+)\] )?(.*)")
_LEVELS: Final = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


@dataclass(frozen=True, slots=True)
class Words:
    """A log line of Envoy: level (as in `logging`), logger, source location, and text."""

    level: int
    logger: str
    place: str
    message: str


def read_words(line: str, before: int = logging.WARNING) -> Words:
    """Parse a line. A line without Envoy's format continues the one before, and gets the level `before`."""
    if match := _LINE.fullmatch(line):
        level, logger, place, text = match.groups()
        return Words(_LEVELS.get(level, logging.ERROR), f"envoy.{logger}", place or "", text)
    return Words(before, "envoy", "", line)


async def relay(stream: StreamReader) -> None:
    """Write all lines of Envoy's standard error into the log, until the stream ends."""
    level, rest = logging.WARNING, b""
    while data := await stream.read(_LONGEST):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _LONGEST:
            lines, rest = [*lines, rest], b""
        for words in _read(lines, level):
            level = words.level
            _log(words)
    for words in _read([rest], level):
        _log(words)


def _read(lines: list[bytes], level: int) -> Iterator[Words]:
    for line in lines:
        if text := line.decode(errors="backslashreplace").rstrip():
            words = read_words(text, level)
            level = words.level
            yield words


def _log(words: Words) -> None:
    place = {"place": words.place} if words.place else {}
    structlog.get_logger(words.logger).log(words.level, words.message, source="envoy", **place)
