"""Client of an agent's status server."""

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final

from meshwright.agent.errors import AgentError
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import DRAIN_PATH, STATUS_PATH

LONGEST_SECONDS: Final = 10.0
"""Seconds for one answer."""
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("proxy", "ready", "not_ready", "envoy", "certificate", "control_plane"),
    "envoy": ("pids",),
    "control_plane": ("address", "reached", "since", "reason", "said", "do"),
}
"""The fields always present in `meshwright.agent.status.description`, at the top and nested."""


class AgentSilent(AgentError):
    """An agent does not answer at the address, or something else answers."""


def request_status(
    status: HostPort, path: str, seconds: float = LONGEST_SECONDS, method: str = "GET"
) -> tuple[int, str]:
    """Request a path of an agent; return status and text. Raises AgentSilent without an answer."""
    connection = http.client.HTTPConnection(status.host, status.port, timeout=seconds)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise AgentSilent(f"the agent at {status} does not answer: {error}") from error
    finally:
        connection.close()


def drained(at: HostPort) -> None:
    """Start a drain in an agent; raise AgentSilent if not accepted."""
    code, text = request_status(at, DRAIN_PATH, method="POST")
    if code != 200:
        raise AgentSilent(f"the agent at {at} answers with status {code}: {text.strip()[:200]}")


def status_of(at: HostPort) -> dict[str, Any]:
    """Return an agent's full status, as made by `described`; raise AgentSilent.

    The error also occurs for an answer of another form, as from an agent of another version.
    """
    code, text = request_status(at, STATUS_PATH)
    if code != 200:
        raise AgentSilent(f"the agent at {at} answers with status {code}: {text.strip()[:200]}")
    try:
        result: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise AgentSilent(f"the answer of the agent at {at} is not JSON: {error}") from error
    for name, fields in _FIELDS.items():
        part = result[name] if name else result
        for field in fields:
            if not isinstance(part, dict) or field not in part:
                where = f"`{name}` in its answer" if name else "its answer"
                raise AgentSilent(f"unexpected answer of the agent at {at}: {where} has no field `{field}`")
    return result
