"""Events about objects without conditions: one for each problem, and one when the problem is resolved.

An Event begins with its problem. While the problem lasts, the Event continues as a series, because the API
server deletes Events after an hour by default. A second Event reports the end of the problem. If the problem
returns, the first Event continues. The reported problems are read back from the Events, so that a restarted
server or another replica continues where the last one stopped.
"""

import enum
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from meshwright.kube.resource import Raw, Resource
from meshwright.kubernetes.status.statements import Aspect, aspect, bounded, is_reported, reason
from meshwright.mesh.kinds import NAMESPACE, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem
from meshwright.specs.manifest import CLUSTER_WIDE

EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
CONTROLLER: Final = "meshwright.dev/control-plane"
"""Field manager of conditions, and reporting controller of Events."""

RENEWED: Final = timedelta(minutes=25)
"""Time between two renewals of an Event during its problem."""

OURS: Final = "app.kubernetes.io/managed-by"
HOME: Final = "meshwright.dev/home"
PROBLEM: Final = "meshwright.dev/problem"
FIELD: Final = "meshwright.dev/field"
"""Labels that identify our Events; FIELD is an annotation."""

MENDED: Final = "Mended"
MORE: Final = "MoreProblems"

_INSTANCE: Final = 128
_NAME: Final = 200
_ACTIONS: Final[Mapping[Aspect, str]] = {
    Aspect.ACCEPTED: "Accept",
    Aspect.PROGRAMMED: "Program",
    Aspect.CONFLICTED: "Merge",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """Content of an Event about an object. `problem` is a digest of the problem's code, field and value."""

    about: ObjectKey
    problem: str
    reason: str
    action: str
    note: str
    field: str = ""

    @property
    def is_mended(self) -> bool:
        """Return whether the Event reports the end of the problem."""
        return self.reason == MENDED

    def mended(self) -> Self:
        """Return the content of the Event for the end of this problem."""
        return replace(self, reason=MENDED, note=bounded(f"{self.reason} is resolved: {self.note}"))


@dataclass(frozen=True, slots=True)
class WrittenEvent:
    """An Event in the cluster: content, place, time of the last observation, and number of observations.

    `uid` is that of the object that the Event is about.
    """

    notice: Notice
    namespace: str
    name: str
    last: datetime
    count: int = 1
    uid: str = ""

    @property
    def known_as(self) -> tuple[str, bool]:
        """Return the key of the Event among its object's Events: the problem, and whether resolved."""
        return self.notice.problem, self.notice.is_mended


@dataclass(frozen=True, slots=True)
class EventReporter:
    """Reporter of Events: the name of the server, and the namespace of its Lease.

    Servers with the same Lease replace one another, so each continues the Events of the others.
    """

    instance: str
    home: str


class EventAction(enum.Enum):
    """Kind of a write for an Event: creation, or one more observation."""

    BEGIN = enum.auto()
    GO_ON = enum.auto()


@dataclass(frozen=True, slots=True)
class Action:
    """One write to the API server: a new Event, or the next observation of the Event `written`."""

    act: EventAction
    notice: Notice
    written: WrittenEvent | None = None


def notice(about: ObjectKey, problem: Problem) -> Notice:
    """Return the notice of a problem of an object.

    Equal code, field and value are the same problem, even if reported by different proxies.
    """
    what = (problem.field, problem.value) if problem.value else (problem.field, problem.expected)
    identity = hashlib.sha256("\0".join((problem.code, *what)).encode()).hexdigest()[:16]
    code, action = reason(problem.code), _ACTIONS[aspect(problem)]
    return Notice(about, identity, code, action, bounded(problem.clause), problem.field)


def notices(about: ObjectKey, problems: Iterable[Problem]) -> dict[str, Notice]:
    """Return the notices of an object's problems, one for each problem: the first in text order."""
    result: dict[str, Notice] = {}
    messages = [notice(about, problem) for problem in problems if is_reported(problem)]
    for item in sorted(messages, key=lambda item: item.note):
        result.setdefault(item.problem, item)
    return result


def more(namespace: Namespace, count: int) -> Notice:
    """Return one notice for the problems of a namespace beyond the limit, with their rough number.

    The number is rounded down to 1, 2 or 5 times a power of ten, so that small changes need no new Event.
    """
    rough = 1
    for number in _rough():
        if number > count:
            break
        rough = number
    text = (
        f"at least {rough} more problems in this namespace: `meshwright lint --kubernetes` lists all of them"
    )
    return Notice(ObjectKey.of_namespace(namespace), f"more-{rough}", MORE, "Accept", text, MORE)


def _rough() -> Iterator[int]:
    scale = 1
    while True:
        yield from (scale, 2 * scale, 5 * scale)
        scale *= 10


def due(
    wanted: Mapping[str, Notice],
    written: Mapping[tuple[str, bool], WrittenEvent],
    now: datetime,
    *,
    mending: bool = True,
) -> Iterator[Action]:
    """Yield the writes for one object, from the wanted notices and the Events in the cluster.

    Without `mending`, resolved problems are not reported. A resolved problem is not reported either while the
    same field has another problem with the same code, so that users who try several values see current
    problems only.
    """
    for problem, item in wanted.items():
        there = written.get((problem, False))
        if there is None:
            yield Action(EventAction.BEGIN, item)
        elif not is_open(there, written) or now - there.last >= RENEWED:
            yield Action(EventAction.GO_ON, there.notice, there)
    places = {(item.reason, item.field) for item in wanted.values()}
    for (problem, is_mended), there in written.items():
        over = there.notice
        if not mending or is_mended or problem in wanted or (over.reason, over.field) in places:
            continue
        if is_open(there, written):
            before = written.get((problem, True))
            yield Action(EventAction.BEGIN if before is None else EventAction.GO_ON, over.mended(), before)


def is_open(there: WrittenEvent, written: Mapping[tuple[str, bool], WrittenEvent]) -> bool:
    """Return whether the problem of an Event is open: not reported as resolved after the Event."""
    mended = written.get((there.notice.problem, True))
    return mended is None or there.last >= mended.last


def standing(written: Mapping[tuple[str, bool], WrittenEvent]) -> int:
    """Return the number of open problems among one object's Events."""
    return sum(
        not is_mended and is_open(written_event, written) for (_, is_mended), written_event in written.items()
    )


def namespace_of(about: ObjectKey) -> str:
    """Return the namespace of an Event about an object. A Namespace contains the Events about itself."""
    return about.namespace or (about.name if about.kind == NAMESPACE else "default")


def begun(notice: Notice, uid: str, now: datetime) -> WrittenEvent:
    """Return a new Event. Its name follows from the object and the problem.

    All replicas therefore choose the same name, and a second creation fails as a conflict.
    """
    identity = "\0".join((uid, notice.problem, notice.reason if notice.is_mended else ""))
    named = notice.about.name[:_NAME].rstrip(".-")
    name = f"{named}.{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    return WrittenEvent(notice, namespace_of(notice.about), name, now, uid=uid)


def body(
    written: WrittenEvent, api_version: str, metadata: Raw, reporter: EventReporter
) -> dict[str, object]:
    """Return the JSON of a new Event; `metadata` belongs to the object that the Event is about."""
    notice = written.notice
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {
            "name": written.name,
            "namespace": written.namespace,
            "labels": {OURS: "meshwright", HOME: reporter.home, PROBLEM: notice.problem},
            "annotations": {FIELD: notice.field},
        },
        "eventTime": micro(written.last),
        "reportingController": CONTROLLER,
        "reportingInstance": reporter.instance[:_INSTANCE],
        "action": notice.action,
        "reason": notice.reason,
        "regarding": {
            "apiVersion": api_version,
            "kind": notice.about.kind.name,
            "name": notice.about.name,
            "namespace": written.namespace,
            "uid": str(metadata.get("uid", "")),
            "resourceVersion": str(metadata.get("resourceVersion", "")),
        },
        "note": notice.note,
        "type": "Normal" if notice.is_mended else "Warning",
    }


def again(written: WrittenEvent, now: datetime) -> WrittenEvent:
    """Return the Event with one more observation at the time `now`."""
    return replace(written, last=now, count=written.count + 1)


def series(written: WrittenEvent) -> dict[str, object]:
    """Return the merge patch of the Event's `series`, for another observation."""
    return {"series": {"count": max(2, written.count), "lastObservedTime": micro(written.last)}}


def read(raw: Raw) -> WrittenEvent | None:
    """Parse an Event of Meshwright; return None for an Event of another controller."""
    try:
        metadata, of, went_on = raw["metadata"], raw["regarding"], raw.get("series") or {}
        if raw.get("reportingController") != CONTROLLER:
            return None
        group = str(of.get("apiVersion", "")).rpartition("/")[0]
        kind = Kind(str(of["kind"]), group)
        namespace = "" if kind in CLUSTER_WIDE else str(of.get("namespace", ""))
        about = ObjectKey(kind, Namespace(namespace), str(of["name"]))
        field, problem = metadata.get("annotations", {}).get(FIELD, ""), metadata["labels"][PROBLEM]
        notice = Notice(about, problem, raw["reason"], raw["action"], raw.get("note", ""), field)
        last = datetime.fromisoformat(went_on.get("lastObservedTime") or raw["eventTime"])
        count, uid = int(went_on.get("count", 1)), str(of.get("uid", ""))
        return WrittenEvent(notice, metadata["namespace"], metadata["name"], last, count, uid)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def micro(moment: datetime) -> str:
    """Return a time in the MicroTime format of the API."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
