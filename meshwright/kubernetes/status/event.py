"""Events about objects that have no status: one for each problem, renewed rarely, and one when it is mended.

An Event begins when a problem does. As long as the problem stands it goes on as a series, so that the API
server does not forget it (after an hour, unless told otherwise); when the problem is gone a second Event says
so. If it comes back, the first goes on. What was told is read from the Events themselves: a server that is
restarted, or another replica, goes on where the last one stopped.
"""

import enum
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self

from meshwright.kube.resource import Raw, Resource
from meshwright.kubernetes.status.statements import Aspect, aspect, bounded, is_told, reason
from meshwright.mesh.kinds import NAMESPACE, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
CONTROLLER: Final = "meshwright.dev/control-plane"
"""The field manager of conditions, and who reports Events."""

RENEWED: Final = timedelta(minutes=25)
"""How long an Event that goes on is left alone."""

OURS: Final = "app.kubernetes.io/managed-by"
HOME: Final = "meshwright.dev/home"
PROBLEM: Final = "meshwright.dev/problem"
FIELD: Final = "meshwright.dev/field"
"""The labels by which our Events are found and known again, and an annotation."""

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
    """What an Event says of an object. `problem` identifies what is wrong, where, and what stands there."""

    about: ObjectKey
    problem: str
    reason: str
    action: str
    note: str
    field: str = ""

    @property
    def is_mended(self) -> bool:
        """Whether it says that the problem is gone."""
        return self.reason == MENDED

    def mended(self) -> Self:
        """Return what is said when the problem is gone."""
        return replace(self, reason=MENDED, note=bounded(f"no more {self.reason}: {self.note}"))


@dataclass(frozen=True, slots=True)
class WrittenEvent:
    """An Event that there is: what it says, where it is, and when it was last observed, how often."""

    notice: Notice
    namespace: str
    name: str
    last: datetime
    count: int = 1

    @property
    def known_as(self) -> tuple[str, bool]:
        """What tells it from others of its object."""
        return self.notice.problem, self.notice.is_mended


@dataclass(frozen=True, slots=True)
class EventReporter:
    """Who reports: the server's name, and the namespace of its Lease.

    All that have that one take one another's place: what others have told is theirs.
    """

    instance: str
    home: str


class EventAction(enum.Enum):
    """What to do about an Event."""

    BEGIN = enum.auto()
    GO_ON = enum.auto()


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to be written: an Event that begins, or `told`, which goes on."""

    act: EventAction
    notice: Notice
    told: WrittenEvent | None = None


def notice(about: ObjectKey, problem: Problem) -> Notice:
    """Return what is said of a problem of an object.

    The same value that is wrong in the same way is the same problem, whichever proxy said it first.
    """
    what = (problem.field, problem.value) if problem.value else (problem.field, problem.expected)
    identity = hashlib.sha256("\0".join((problem.code, *what)).encode()).hexdigest()[:16]
    code, action = reason(problem.code), _ACTIONS[aspect(problem)]
    return Notice(about, identity, code, action, bounded(problem.said), problem.field)


def notices(about: ObjectKey, problems: Iterable[Problem]) -> dict[str, Notice]:
    """Return what is to be said of an object's problems, each once: of the same problem the first words."""
    found: dict[str, Notice] = {}
    told = [notice(about, problem) for problem in problems if is_told(problem)]
    for each in sorted(told, key=lambda each: each.note):
        found.setdefault(each.problem, each)
    return found


def more(namespace: Namespace, count: int) -> Notice:
    """Return what is said of problems that are too many to be told one by one: roughly how many they are."""
    rough = 1
    for each in _rough():
        if each > count:
            break
        rough = each
    said = f"at least {rough} more problems of objects here: `meshwright lint --kubernetes` says all"
    return Notice(ObjectKey.of_namespace(namespace), f"more-{rough}", MORE, "Accept", said, MORE)


def _rough() -> Iterator[int]:
    scale = 1
    while True:
        yield from (scale, 2 * scale, 5 * scale)
        scale *= 10


def due(
    wanted: Mapping[str, Notice],
    told: Mapping[tuple[str, bool], WrittenEvent],
    now: datetime,
    *,
    mending: bool = True,
) -> Iterator[Action]:
    """Yield what is to be written of one object, of which something else was told.

    Without `mending` nothing is said to be mended. Nor is a problem while another of its kind is in its
    place: whoever tries one thing after another is told what is wrong, and not each time what was.
    """
    for problem, each in wanted.items():
        there = told.get((problem, False))
        if there is None:
            yield Action(EventAction.BEGIN, each)
        elif not stands(there, told) or now - there.last >= RENEWED:
            yield Action(EventAction.GO_ON, there.notice, there)
    places = {(each.reason, each.field) for each in wanted.values()}
    for (problem, is_mended), there in told.items():
        over = there.notice
        if not mending or is_mended or problem in wanted or (over.reason, over.field) in places:
            continue
        if stands(there, told):
            before = told.get((problem, True))
            yield Action(EventAction.BEGIN if before is None else EventAction.GO_ON, over.mended(), before)


def stands(there: WrittenEvent, told: Mapping[tuple[str, bool], WrittenEvent]) -> bool:
    """Say whether a problem was told, and not that it is mended since."""
    mended = told.get((there.notice.problem, True))
    return mended is None or there.last >= mended.last


def standing(told: Mapping[tuple[str, bool], WrittenEvent]) -> int:
    """Count the problems that were told of one object, and not that they are mended since."""
    return sum(not is_mended and stands(each, told) for (_, is_mended), each in told.items())


def namespace_of(about: ObjectKey) -> str:
    """Return the namespace that an Event about an object is in: that of a Namespace is its own."""
    return about.namespace or (about.name if about.kind == NAMESPACE else "default")


def begun(said: Notice, uid: str, now: datetime) -> WrittenEvent:
    """Return a new Event; the same of the same object always has the same name."""
    identity = "\0".join((uid, said.problem, said.reason if said.is_mended else ""))
    named = said.about.name[:_NAME].rstrip(".-")
    name = f"{named}.{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    return WrittenEvent(said, namespace_of(said.about), name, now)


def body(told: WrittenEvent, api_version: str, metadata: Raw, who: EventReporter) -> dict[str, object]:
    """Return an Event as the API takes it, with what the object that it is about has in its metadata."""
    said = told.notice
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {
            "name": told.name,
            "namespace": told.namespace,
            "labels": {OURS: "meshwright", HOME: who.home, PROBLEM: said.problem},
            "annotations": {FIELD: said.field},
        },
        "eventTime": micro(told.last),
        "reportingController": CONTROLLER,
        "reportingInstance": who.instance[:_INSTANCE],
        "action": said.action,
        "reason": said.reason,
        "regarding": {
            "apiVersion": api_version,
            "kind": said.about.kind.name,
            "name": said.about.name,
            "namespace": told.namespace,
            "uid": str(metadata.get("uid", "")),
            "resourceVersion": str(metadata.get("resourceVersion", "")),
        },
        "note": said.note,
        "type": "Normal" if said.is_mended else "Warning",
    }


def again(told: WrittenEvent, now: datetime) -> WrittenEvent:
    """Return an Event that goes on."""
    return replace(told, last=now, count=told.count + 1)


def series(told: WrittenEvent) -> dict[str, object]:
    """Return how an Event that goes on is patched."""
    return {"series": {"count": max(2, told.count), "lastObservedTime": micro(told.last)}}


def read(raw: Raw) -> WrittenEvent | None:
    """Read an Event of ours; None for one that is not."""
    try:
        metadata, of, went_on = raw["metadata"], raw["regarding"], raw.get("series") or {}
        if raw.get("reportingController") != CONTROLLER:
            return None
        group = str(of.get("apiVersion", "")).rpartition("/")[0]
        kind = Kind(str(of["kind"]), group)
        namespace = "" if kind == NAMESPACE else str(of.get("namespace", ""))
        about = ObjectKey(kind, Namespace(namespace), str(of["name"]))
        field, problem = metadata.get("annotations", {}).get(FIELD, ""), metadata["labels"][PROBLEM]
        said = Notice(about, problem, raw["reason"], raw["action"], raw.get("note", ""), field)
        last = datetime.fromisoformat(went_on.get("lastObservedTime") or raw["eventTime"])
        return WrittenEvent(said, metadata["namespace"], metadata["name"], last, int(went_on.get("count", 1)))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def micro(moment: datetime) -> str:
    """Return a moment as the API takes those with microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
