"""Names for how a call ended."""

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
"""A database call that was answered; HTTP calls have their status as outcome."""

CALL_ERRORS: Final = (aiohttp.ClientError, OSError, TimeoutError, EOFError)
"""What a call over HTTP or TCP may end with."""


def of_error(error: Exception) -> str:
    """Name the failure of a call: refused, reset, closed, timeout, unresolved, or `error: <class>`."""
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
    """Say whether a call was served: `ok`, or a status from 200 to 299."""
    return outcome == OK or (outcome.isdigit() and 200 <= int(outcome) <= 299)


def is_denied(outcome: str) -> bool:
    """Say whether a call was turned away: no connection, or a proxy's 403, 404 or 503.

    Neither allowed nor denied: a timeout, an unknown name, another status. They are faults.
    """
    return outcome in (REFUSED, RESET, CLOSED, "403", "404", "503")
