"""Waiting for a proxy to be ready: for whatever must not begin before it serves."""

import http.client
import time
from collections.abc import Callable
from typing import Final

from mesh.host_port import HostPort
from sidecars.layout import READY_PATH

_PAUSE_SECONDS: Final = 0.2


def until_ready(
    status: HostPort,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Ask an agent's server until its proxy is ready; return nothing, or why it is not after `seconds`."""
    limit = clock() + seconds
    while words := _not_ready(status):
        if clock() >= limit:
            return words
        pause(_PAUSE_SECONDS)
    return ""


def _not_ready(status: HostPort) -> str:
    connection = http.client.HTTPConnection(status.host, status.port, timeout=5)
    try:
        connection.request("GET", READY_PATH)
        answer = connection.getresponse()
        words = "; ".join(answer.read().decode(errors="replace").splitlines())
    except (OSError, http.client.HTTPException) as error:
        return f"the agent at {status} does not answer: {error}"
    finally:
        connection.close()
    return "" if answer.status == 200 else words or f"status {answer.status}"
