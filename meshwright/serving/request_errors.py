"""Logger for aiohttp servers: unreadable requests and failed handlers, a line per kind and period.

aiohttp writes a traceback for every unreadable request and for every failed handler. Any client that reaches
the port can cause both. For an unreadable request only the kind and the client's address are logged, because
the bytes may hold credentials, for example of a client with a wrong port. For a failed handler the first
traceback of a kind is logged, because the fault is ours.
"""

import logging
import re
import sys
from pathlib import Path
from typing import Final, Protocol

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

from meshwright.serving.repeated_lines import RepeatedLines
from meshwright.serving.repeats import PERIOD_SECONDS

UNREADABLE: Final = "unreadable requests"
FAILED_AGAIN: Final = "requests failed again"
_WORD_BOUNDARY: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
# ConnectionError: the client closed the connection while a handler was writing.
_OF_CLIENT: Final = (HttpProcessingError, RequestPayloadError, ConnectionError)


class Log(Protocol):
    """The methods of a structlog logger for use by RequestErrors."""

    def warning(self, event: str, **fields: object) -> object:
        """Write a line about an unreadable request, which is the client's fault."""

    def error(self, event: str, **fields: object) -> object:
        """Write a line about a failed request handler, which is a fault of this program."""


def reason_of(error: BaseException) -> str:
    """Return the kind of an error as words of a log: `bad-status-line` for aiohttp's BadStatusLine."""
    return _WORD_BOUNDARY.sub("-", type(error).__name__).lower()


class RequestErrors(logging.Logger):
    """Replacement of the logger `aiohttp.server` for one server; for one event loop."""

    def __init__(self, log: Log, seconds: float = PERIOD_SECONDS) -> None:
        super().__init__("aiohttp.server")
        self.parent = logging.getLogger("aiohttp.server")
        self._lines = log
        self._unreadable = RepeatedLines(self._unreadable_again, seconds)
        self._failed = RepeatedLines(self._failed_again, seconds)

    def exception(self, msg: object, *args: object, **options: object) -> None:
        """Log an error of an HTTP request: an unreadable request, or a failed handler of this program."""
        error = _error_of(options.get("exc_info", True))
        if isinstance(error, _OF_CLIENT):
            self._unreadable_request(error, args)
        elif self._failed.first(_place_of(error)):
            self._lines.error(str(msg) % args if args else str(msg), exc_info=error)

    def debug(self, msg: object, *args: object, **options: object) -> None:  # noqa: ARG002
        """Log input other than HTTP, which aiohttp logs at this level; drop all other debug lines."""
        error = _error_of(options.get("exc_info"))
        if isinstance(error, _OF_CLIENT):
            self._unreadable_request(error, args)

    def flush(self) -> None:
        """Write the remaining counts of repeated errors, at the end of the server."""
        self._unreadable.flush()
        self._failed.flush()

    def _unreadable_request(self, error: BaseException, args: tuple[object, ...]) -> None:
        kind = reason_of(error)
        if self._unreadable.first(kind):
            client = {"client": str(args[0])} if args and args[0] else {}
            self._lines.warning(UNREADABLE, reason=self._unreadable.kind(kind), count=1, **client)

    def _unreadable_again(self, kind: str, count: int) -> None:
        self._lines.warning(UNREADABLE, reason=kind, count=count)

    def _failed_again(self, kind: str, count: int) -> None:
        self._lines.error(FAILED_AGAIN, error=kind, count=count)


def _error_of(value: object) -> BaseException | None:
    if isinstance(value, BaseException):
        return value
    return sys.exc_info()[1] if value else None


def _place_of(error: BaseException | None) -> str:
    """Return the error and the place of its origin, for example `KeyError in routes.py:91`.

    Errors of one place are one kind.
    """
    trace = None if error is None else error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    file = Path(trace.tb_frame.f_code.co_filename).name
    return f"{type(error).__name__} in {file}:{trace.tb_lineno}"
