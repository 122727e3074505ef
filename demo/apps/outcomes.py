"""Names of the outcomes of calls between demo programs."""

import asyncio
import errno
import socket
from typing import Final

import aiohttp

REFUSED: Final = "refused"
RESET: Final = "reset"
CLOSED: Final = "closed"
TIMEOUT: Final = "timeout"
UNRESOLVED: Final = "unresolved"
OK: Final = "ok"
"""Outcome of a successful database call; HTTP calls have their status as outcome."""

CALL_ERRORS: Final = (aiohttp.ClientError, OSError, TimeoutError, EOFError)
"""Exceptions of failed calls over HTTP or TCP."""


def of_error(error: Exception) -> str:
    """Return the outcome for an error: refused, reset, closed, timeout, unresolved, or `error: <class>`."""
    match error:
        case TimeoutError():
            return TIMEOUT
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return UNRESOLVED
        case aiohttp.ServerDisconnectedError() | asyncio.IncompleteReadError():
            return CLOSED
        case aiohttp.ClientConnectorError(os_error=OSError(errno=errno.ECONNREFUSED)):
            return REFUSED
        case OSError(errno=errno.ECONNREFUSED):
            return REFUSED
        case OSError(errno=errno.ECONNRESET | errno.EPIPE):
            return RESET
        case _:
            return f"error: {type(error).__name__}"


def is_allowed(outcome: str) -> bool:
    """Return whether an outcome means a served call: `ok`, or a status from 200 to 299."""
    return outcome == OK or (outcome.isdigit() and 200 <= int(outcome) <= 299)


def is_denied(outcome: str) -> bool:
    """Return whether a call was denied: the connection failed, or a proxy answered 403, 404 or 503.

    Timeouts, unresolved names and other statuses are neither served nor denied. They are faults.
    """
    return outcome in (REFUSED, RESET, CLOSED, "403", "404", "503")
