"""Rejections as problems: what proxies refuse, held against the one object that is at fault."""

from collections.abc import Iterable
from typing import Final

from catalog.policy.provenance import InputObject
from catalog.policy.units import Calling, Unit
from catalog.store.inventory import holder_of
from catalog.store.objects import workload_object
from catalog.store.view import View
from meshwright.delivery.quarantine.exclusions import refused_units
from meshwright.delivery.quarantine.findings import RejectedResource
from meshwright.delivery.quarantine.objects_at_fault import at_fault, edited, unlikelihood
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.sidecars.type_words import short_type
from xds.cache import NodeKey
from xds.protocol.resources.resource import ResourceName, TypeUrl, Version

REJECTED: Final = "resource-rejected"
LEFT_OUT: Final = "policy-left-out"

PROBLEMS: Final = 50
"""Rejected resources that are told; if there are more, their number is."""

_WORDS: Final = 200
_OTHERS: Final = 3
"""Objects that are named of those behind what the machine does not let a proxy have."""


_UNTIL: Final = "until it is edited or accepted; it is offered again from time to time, or by proxy retry"


class Rejections:
    """Puts rejections into words; remembers what was behind those that stand."""

    def __init__(self) -> None:
        self._behind: dict[tuple[NodeKey, TypeUrl, ResourceName, Version], tuple[InputObject, ...]] = {}

    def problems(self, serving: GroupSnapshots, rejected: Iterable[RejectedResource]) -> Problems:
        """Return a problem for each thing rejected, and one for all of them that are too many to tell.

        What is left out before any proxy was asked comes first.
        """
        everything = tuple(rejected)
        told = everything[:PROBLEMS]
        before, self._behind = self._behind, {}
        found = [*_left_out(serving)]
        for each in told:
            place = (each.proxy, each.type_url, each.name, each.version)
            behind = before.get(place)
            self._behind[place] = _behind(serving, each) if behind is None else behind
            found.append(problem(serving.view, each, self._behind[place]))
        if len(everything) > len(told):
            found.append(_more(len(everything) - len(told)))
        return tuple(found)


def clause(serving: GroupSnapshots, rejected: RejectedResource) -> str:
    """Return a proxy's words, and the one object that is at fault."""
    found = problem(serving.view, rejected, _behind(serving, rejected))
    said = found.value.removeprefix("rejected: ")
    return said if found.key is None else f"{said}: {found.key} ({found.origin})"


def problem(view: View, rejected: RejectedResource, behind: tuple[InputObject, ...]) -> Problem:
    """Return what is said of something rejected: it is held against the one object that is at fault.

    That of a unit of policy is known. Of a resource it is the likeliest of those `behind` it: of those that
    had changed, if any had; and the workload itself, where the reason is of the moment.
    """
    place = f"{short_type(rejected.type_url)} {rejected.name}"
    if rejected.unit is not None:
        key, field = edited(rejected, behind) or at_fault(view, rejected.unit, behind)
        says = _unit_says(rejected, rejected.unit)
        return _problem(view, REJECTED, key, behind, field or place, f"rejected: {rejected.said}", says)
    key = _workload(view, rejected.proxy) if rejected.reason.of_the_moment else None
    if key is None:
        changed = [each for each in behind if each.key in rejected.changed] or [*behind]
        likeliest = min(
            changed, key=lambda each: (unlikelihood(rejected.type_url, each), each.key), default=None
        )
        key = None if likeliest is None else likeliest.key
    says = _resource_says(rejected, behind, key)
    return _problem(view, REJECTED, key, behind, place, f"rejected: {rejected.said}", says)


def _left_out(serving: GroupSnapshots) -> Iterable[Problem]:
    for unit, (refused, nodes) in refused_units(serving).items():
        behind = serving.behind(nodes[0], *refused.key)
        key, field = at_fault(serving.view, unit, behind)
        place = f"{short_type(refused.key[0])} {refused.key[1]}"
        says = f"it is left out of {place} before it is sent, {_outcome(unit)}, {_UNTIL}"
        said = f"refused: {refused.said}"
        yield _problem(serving.view, LEFT_OUT, key, behind, field or place, said, says)


def _problem(
    view: View,
    code: str,
    key: ObjectKey | None,
    behind: Iterable[InputObject],
    field: str,
    value: str,
    says: str,
) -> Problem:
    """Return a problem at the place where its object stands now: a line that moved changes no resource."""
    sourced = None if key is None else view.sourced.held().get(key)
    elsewhere = next((each.origin for each in behind if each.key == key), FromSource("proxies"))
    origin = elsewhere if sourced is None else sourced.origin
    said = " ".join(value.split())
    short = said if len(said) <= _WORDS else f"{said[: _WORDS - 3]}..."
    return Problem(
        code=code, severity=Severity.ERROR, origin=origin, key=key, field=field, value=short, expected=says
    )


def _outcome(unit: Unit) -> str:
    """Return what becomes of traffic without a unit."""
    if isinstance(unit, Calling):
        return "calls are made as without it"
    return "what it alone would allow is denied"


def _unit_says(rejected: RejectedResource, unit: Unit) -> str:
    where = f"{short_type(rejected.type_url)} {rejected.name}"
    return f"{rejected.proxy} or others reject {where} with it: it is left out, {_outcome(unit)}, {_UNTIL}"


def _resource_says(rejected: RejectedResource, behind: Iterable[InputObject], held: ObjectKey | None) -> str:
    if rejected.reason.of_the_moment:
        says = f"{rejected.proxy} or others of its group reject it for now ({rejected.reason}), {_UNTIL}"
        by_likelihood = sorted(behind, key=lambda each: (unlikelihood(rejected.type_url, each), each.key))
        others = [str(each.key) for each in by_likelihood if each.key != held][:_OTHERS]
        return (
            f"{says}; nothing need be wrong with what it is made from: {', '.join(others)}"
            if others
            else says
        )
    kept = "its last good version" if rejected.replaced else "its last good version where there is one"
    return f"{rejected.proxy} or others of its group reject it and are served {kept} until it changes"


def _workload(view: View, proxy: NodeKey) -> ObjectKey | None:
    workload = holder_of(view, ProxyName.parse(proxy))
    return None if workload is None else workload_object(view, workload.key)


def _behind(serving: GroupSnapshots, rejected: RejectedResource) -> tuple[InputObject, ...]:
    return serving.behind(rejected.proxy, rejected.type_url, rejected.name)


def _more(count: int) -> Problem:
    return Problem(
        code=REJECTED,
        severity=Severity.ERROR,
        origin=FromSource("proxies"),
        expected=f"{count} more resources are rejected",
    )
