"""Wait for a ready proxy, for programs that must start later than the proxy."""

import json
import time
from collections.abc import Callable
from typing import Final

from meshwright.agent.status.client import LONGEST_SECONDS, AgentSilent, request_status
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import READY_PATH, STATUS_PATH

_PAUSE_SECONDS: Final = 0.2
LEAST_SECONDS: Final = 1.0
"""Least seconds for one answer, even when the time is over, so that the caller learns the reason."""


def until_ready(
    status: HostPort,
    seconds: float,
    name: str = "",
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Wait until an agent's proxy is ready; return "", or the reason if still not ready after `seconds`.

    With a `name` the agent must belong to the named proxy, because several agents may run on one machine. For
    a silent agent the function waits as long as time is left, and at least LEAST_SECONDS.
    """
    limit = clock() + seconds

    def left() -> float:
        return min(max(limit - clock(), LEAST_SECONDS), LONGEST_SECONDS)

    while words := _not_ready(status, left()) or (_another(status, name, left()) if name else ""):
        if clock() >= limit:
            return words
        pause(_PAUSE_SECONDS)
    return ""


def proxy_at(status: HostPort, seconds: float = LONGEST_SECONDS) -> str:
    """Return the proxy name of the answering agent; empty if unknown."""
    try:
        code, text = request_status(status, STATUS_PATH, seconds)
        result = json.loads(text) if code == 200 else None
    except (AgentSilent, ValueError):
        return ""
    return str(result.get("proxy", "")) if isinstance(result, dict) else ""


def _another(status: HostPort, name: str, seconds: float) -> str:
    result = proxy_at(status, seconds)
    return "" if result == name else f"the agent at {status} serves {result or 'another proxy'}, not {name}"


def _not_ready(status: HostPort, seconds: float) -> str:
    try:
        code, text = request_status(status, READY_PATH, seconds)
    except AgentSilent as error:
        return str(error)
    return "" if code == 200 else "; ".join(text.splitlines()) or f"status {code}"
