"""Rejected resources as problems, each reported at the one object most likely at fault."""

from collections.abc import Iterable
from typing import Final

from catalog.policy.provenance import InputObject
from catalog.policy.units import Calling, Unit
from catalog.store.inventory import holder_of
from catalog.store.objects import workload_object
from catalog.store.view import View
from meshwright.delivery.quarantine.exclusions import refused_units
from meshwright.delivery.quarantine.findings import RejectedResource
from meshwright.delivery.quarantine.objects_at_fault import (
    at_fault,
    edited,
    listener_clauses,
    part_name,
    unlikelihood,
)
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
"""Maximum number of listed rejections; one more problem has the number of the others."""

_WORDS: Final = 200
_OTHERS: Final = 3
"""Maximum number of objects named behind a resource with a temporary rejection."""


class Rejections:
    """Problems of rejected resources.

    The objects behind a rejected version are remembered while the rejection lasts, because the proxy keeps
    rejecting the version after the objects have changed.
    """

    def __init__(self) -> None:
        self._behind: dict[tuple[NodeKey, TypeUrl, ResourceName, Version], tuple[InputObject, ...]] = {}

    def problems(self, serving: GroupSnapshots, rejected: Iterable[RejectedResource]) -> Problems:
        """Return a problem for each of the first PROBLEMS rejections, and one for all others.

        Parts of policy excluded before they are sent to any proxy precede them.
        """
        everything = tuple(rejected)
        resources = everything[:PROBLEMS]
        before, self._behind = self._behind, {}
        result = [*_left_out(serving)]
        for resource in resources:
            place = (
                resource.proxy,
                resource.type_url,
                resource.name,
                resource.version,
            )
            behind = before.get(place)
            self._behind[place] = _behind(serving, resource) if behind is None else behind
            result.append(problem(serving.view, resource, self._behind[place]))
        if len(everything) > len(resources):
            result.append(_more(len(everything) - len(resources)))
        return tuple(result)


def clause(serving: GroupSnapshots, rejected: RejectedResource) -> str:
    """Return a proxy's error message with the one object at fault, for a line about that proxy."""
    result = problem(serving.view, rejected, _behind(serving, rejected))
    text = result.value.removeprefix("rejected: ")
    named = text if result.key is None else f"{text}: {result.key} ({result.origin})"
    return "; ".join((named, *listener_clauses(serving.view, rejected)))


def problem(view: View, rejected: RejectedResource, behind: tuple[InputObject, ...]) -> Problem:
    """Return the problem of one rejection, at the one object at fault.

    The object of a unit of policy is known. For a whole resource the most likely of the objects in `behind`,
    from which the resource was made, is at fault; changed objects are preferred. For a temporary reason, for
    example a port in use by another program, the workload itself is at fault.
    """
    place = f"{short_type(rejected.type_url)} {rejected.name}"
    if rejected.unit is not None:
        key, field = edited(rejected, behind) or at_fault(view, rejected.unit, behind)
        says = _unit_text(rejected, rejected.unit, key)
        return _problem(view, REJECTED, key, behind, field or place, f"rejected: {rejected.message}", says)
    key = _workload(view, rejected.proxy) if rejected.reason.of_the_moment else None
    if key is None:
        changed = [input_object for input_object in behind if input_object.key in rejected.changed] or [
            *behind
        ]
        likeliest = min(
            changed,
            key=lambda input_object: (unlikelihood(rejected.type_url, input_object), input_object.key),
            default=None,
        )
        key = None if likeliest is None else likeliest.key
    says = _resource_text(view, rejected, behind, key)
    return _problem(view, REJECTED, key, behind, place, f"rejected: {rejected.message}", says)


def _left_out(serving: GroupSnapshots) -> Iterable[Problem]:
    for unit, (refused, nodes) in refused_units(serving).items():
        behind = serving.behind(nodes[0], *refused.key)
        key, field = at_fault(serving.view, unit, behind)
        place = f"{short_type(refused.key[0])} {refused.key[1]}"
        part = part_name(unit, key)
        says = (
            f"Proxies would reject {place} because of {part}. That part is excluded before the configuration "
            f"is sent, and {_outcome(unit)}, until you edit the object."
        )
        text = f"refused: {refused.message}"
        yield _problem(serving.view, LEFT_OUT, key, behind, field or place, text, says)


def _problem(
    view: View,
    code: str,
    key: ObjectKey | None,
    behind: Iterable[InputObject],
    field: str,
    value: str,
    says: str,
) -> Problem:
    """Return a problem with the current origin of the object.

    `behind` may have an older origin, because moving an object to another line does not change any resource.
    """
    sourced = None if key is None else view.sourced.values_unrecorded().get(key)
    elsewhere = next(
        (input_object.origin for input_object in behind if input_object.key == key), FromSource("proxies")
    )
    origin = elsewhere if sourced is None else sourced.origin
    text = " ".join(value.split())
    short = text if len(text) <= _WORDS else f"{text[: _WORDS - 3]}..."
    return Problem(
        code=code, severity=Severity.ERROR, origin=origin, key=key, field=field, value=short, expected=says
    )


def _outcome(unit: Unit) -> str:
    """Return the effect of an excluded unit of policy on traffic, as a clause of a message."""
    if isinstance(unit, Calling):
        return "calls are made without it"
    return "requests that only it allows are denied"


def _retried(rejected: RejectedResource) -> str:
    return f"It is retried automatically; to retry now: `meshwright proxy retry {rejected.proxy}`."


def _unit_text(rejected: RejectedResource, unit: Unit, key: ObjectKey | None) -> str:
    where = f"{short_type(rejected.type_url)} {rejected.name}"
    return (
        f"Proxy {rejected.proxy} (and perhaps other proxies) rejected {where} because of "
        f"{part_name(unit, key)}. That part is excluded, and {_outcome(unit)}, until you edit the "
        f"object or the proxy accepts it. {_retried(rejected)}"
    )


def _resource_text(
    view: View, rejected: RejectedResource, behind: Iterable[InputObject], object_key: ObjectKey | None
) -> str:
    proxies = f"Proxy {rejected.proxy} (and perhaps other proxies of its group)"
    if rejected.reason.of_the_moment:
        clauses = "".join(f"; {clause}" for clause in listener_clauses(view, rejected))
        says = (
            f"{proxies} cannot apply the resource at the moment ({rejected.reason}){clauses}. "
            f"{_retried(rejected)}"
        )
        by_likelihood = sorted(
            behind, key=lambda input_object: (unlikelihood(rejected.type_url, input_object), input_object.key)
        )
        others = [str(input_object.key) for input_object in by_likelihood if input_object.key != object_key][
            :_OTHERS
        ]
        return f"{says} The objects behind it may be correct: {', '.join(others)}." if others else says
    kept = "its last good version" if rejected.replaced else "its last good version where there is one"
    return (
        f"{proxies} rejected the resource and is served {kept}, until you edit the object or the proxy "
        f"accepts the resource. {_retried(rejected)}"
    )


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
        expected=f"{count} more resources are rejected; `meshwright proxies` lists the proxies.",
    )
