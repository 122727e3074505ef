"""Problems with the start of a Pod's sidecar, from the Pod's status. Pure."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from meshwright.agent.reach.times import length
from meshwright.sidecars.injection.names import INIT_CONTAINER, SIDECAR_CONTAINER

STARTS_WITHIN: Final = timedelta(minutes=2)
"""Older Pods are reported if their sidecar has not started."""
LATELY: Final = timedelta(minutes=10)
"""A sidecar killed for its memory within this time is reported, even if running again."""
_OURS: Final = (INIT_CONTAINER, SIDECAR_CONTAINER)
_ON_ITS_WAY: Final = frozenset({"ContainerCreating", "PodInitializing"})
_OUT_OF_MEMORY: Final = "OOMKilled"


class Start(enum.Enum):
    """FAULTY: the sidecar cannot start, or keeps failing. LATE: not started in time, or killed lately."""

    FAULTY = "faulty"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem with the start of a Pod's sidecar: faulty or late, and the reason as text."""

    start: Start
    why: str


def trouble_of(pod: Mapping[str, Any], now: datetime) -> Trouble | None:
    """Return the reason for which a Pod's sidecar does not run; None if running, or still within its time.

    Only the containers `meshwright-init` and `meshwright-sidecar` count. Faults of the application's
    containers are not the mesh's to report.
    """
    ours = list(_ours(pod))
    if why := next(filter(None, map(_fault, ours)), ""):
        return Trouble(Start.FAULTY, why)
    if why := next((item for status in ours if (item := _killed_lately(status, now))), ""):
        return Trouble(Start.LATE, why)
    if _is_running(pod) or _has_started(ours):
        return None
    age = now - _moment(pod["metadata"].get("creationTimestamp"), now)
    if age <= STARTS_WITHIN:
        return None
    return Trouble(Start.LATE, f"not started for {length(age)}: {_waits_for(pod, ours)}")


def _ours(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    status = pod.get("status") or {}
    for name in ("initContainerStatuses", "containerStatuses"):
        yield from (item for item in status.get(name) or () if item.get("name") in _OURS)


def _fault(status: Mapping[str, Any]) -> str:
    """Return why a container fails; empty for a container that runs, has ended well, or is being created."""
    state, name = status.get("state") or {}, status.get("name")
    ended = _ended(state) or _ended(status.get("lastState") or {})
    if (waiting := state.get("waiting")) is not None:
        reason = str(waiting.get("reason") or "")
        if not reason or reason in _ON_ITS_WAY:
            return ""
        image = f" of {status.get('image')}" if "Image" in reason else ""
        return f"{name}: {reason}{image}{f', ended by {ended}' if ended else ''}"
    return f"{name}: ended by {ended}" if ended and "terminated" in state else ""


def _ended(state: Mapping[str, Any]) -> str:
    """Return the reason and exit code with which a container ended; empty for exit code 0."""
    terminated = state.get("terminated") or {}
    code = terminated.get("exitCode", 0)
    return f"{terminated.get('reason') or 'Error'}, exit code {code}" if code else ""


def _killed_lately(status: Mapping[str, Any], now: datetime) -> str:
    last = (status.get("lastState") or {}).get("terminated") or {}
    if last.get("reason") != _OUT_OF_MEMORY:
        return ""
    ago = now - _moment(last.get("finishedAt"), datetime.min.replace(tzinfo=now.tzinfo))
    if ago > LATELY:
        return ""
    return f"{status.get('name')}: killed for its memory ({_OUT_OF_MEMORY}) {length(ago)} ago, and runs again"


def _is_running(pod: Mapping[str, Any]) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Running")


def _has_started(ours: list[Mapping[str, Any]]) -> bool:
    return any(item.get("name") == SIDECAR_CONTAINER and item.get("started") for item in ours)


def _waits_for(pod: Mapping[str, Any], ours: list[Mapping[str, Any]]) -> str:
    """Return the reason why a Pod is pending: the scheduler, a waiting container, or the startup probe."""
    conditions = {
        condition.get("type"): condition for condition in (pod.get("status") or {}).get("conditions") or ()
    }
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        why = scheduled.get("message") or scheduled.get("reason") or "the scheduler does not give a reason"
        return f"no node for the Pod: {why}"
    waiting = ((item.get("state") or {}).get("waiting") or {} for item in ours)
    reason = next((str(item["reason"]) for item in waiting if item.get("reason")), "")
    return reason or "its startup probe has not succeeded"


def _moment(text: object, otherwise: datetime) -> datetime:
    return datetime.fromisoformat(text) if isinstance(text, str) else otherwise
