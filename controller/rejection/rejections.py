"""Rejections as problems: a resource that proxies reject, traced to the objects behind it."""

from collections.abc import Iterable
from typing import Final

from admin.labels import short_type
from catalog.provenance import MadeFrom
from controller.rejection.withholding import Rejected
from controller.snapshots.serving import Serving
from mesh.objects import Origin, Problem, Severity
from xds.cache import NodeKey
from xds.resource import ENDPOINT, LISTENER, ResourceName, TypeUrl, Version

REJECTED: Final = "resource-rejected"

PROBLEMS: Final = 50
"""Rejected resources that are told; if there are more, their number is."""

OBJECTS: Final = 8
"""Objects that are named beside the first."""

_WORDS: Final = 200

_POLICIES: Final = ("HTTPRouteGroup", "TrafficSplit", "TCPRoute", "TrafficTarget")
_PLACES: Final = ("Workload", "Pod", "EndpointSlice", "Service")


class Rejections:
    """Puts rejections into words; remembers what was behind those that stand."""

    def __init__(self) -> None:
        self._behind: dict[tuple[NodeKey, TypeUrl, ResourceName, Version], tuple[MadeFrom, ...]] = {}

    def problems(self, serving: Serving, rejected: Iterable[Rejected]) -> tuple[Problem, ...]:
        """Return a problem for each rejected resource, and one for all of them that are too many to tell."""
        everything = tuple(rejected)
        told = everything[:PROBLEMS]
        before, self._behind = self._behind, {}
        found = []
        for each in told:
            place = (each.proxy, each.type_url, each.name, each.version)
            behind = before.get(place)
            self._behind[place] = _behind(serving, each) if behind is None else behind
            found.append(problem(each, tuple(_here(serving, every) for every in self._behind[place])))
        if len(everything) > len(told):
            found.append(_more(len(everything) - len(told)))
        return tuple(found)


def problem(rejected: Rejected, behind: tuple[MadeFrom, ...]) -> Problem:
    """Return what is said of a rejected resource: it is held against the likeliest object behind it."""
    first, *others = sorted(behind, key=lambda each: (_unlikelihood(rejected.type_url, each), each)) or (
        None,
    )
    named = ", ".join(str(each) for each in others[:OBJECTS])
    more = f" and {len(others) - OBJECTS} more" if len(others) > OBJECTS else ""
    kept = "its last good version" if rejected.replaced else "its last good version where there is one"
    said = f"rejected: {' '.join(rejected.said.split())}"
    return Problem(
        REJECTED,
        Severity.ERROR,
        Origin("proxies") if first is None else first.origin,
        None if first is None else first.key,
        f"{short_type(rejected.type_url)} {rejected.name}",
        said if len(said) <= _WORDS else f"{said[: _WORDS - 3]}...",
        f"{rejected.proxy} or others of its group reject it and are served {kept} until it changes"
        + (f"; it is also made from {named}{more}" if others else ""),
    )


def _behind(serving: Serving, rejected: Rejected) -> tuple[MadeFrom, ...]:
    group = serving.group(rejected.proxy)
    return () if group is None else serving.objects_behind(group, rejected.type_url, rejected.name)


def _here(serving: Serving, made_from: MadeFrom) -> MadeFrom:
    """Return it with the place where it stands now: a line that moved changes no resource."""
    sourced = serving.view.sourced.held().get(made_from.key)
    return made_from if sourced is None else MadeFrom(made_from.key, sourced.origin)


def _unlikelihood(type_url: TypeUrl, made_from: MadeFrom) -> int:
    """Return how unlikely a kind of object is to be at fault: first what proxies get nearly as it is written.

    Listeners and endpoints hold addresses and ports above all, anything else what policies say.
    """
    places_first = type_url in (LISTENER, ENDPOINT)
    kinds = (*_PLACES, *_POLICIES) if places_first else (*_POLICIES, *reversed(_PLACES))
    return kinds.index(made_from.key.kind) if made_from.key.kind in kinds else len(kinds)


def _more(count: int) -> Problem:
    return Problem(
        REJECTED, Severity.ERROR, Origin("proxies"), None, "", "", f"{count} more resources are rejected"
    )
