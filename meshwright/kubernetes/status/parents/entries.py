"""Entries of `status.parents` as values, and their place among the entries of other controllers.

Services have another controller than Gateways and ListenerSets, so the entries of one route may name both.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from catalog.relations.gateways.verdicts import GatewayVerdict
from catalog.relations.verdicts import AcceptedReason, Attachment, ParentVerdict, ResolvedReason, resolution
from meshwright.kubernetes.status.conditions.conditions import FALSE, TRUE, Condition, Conditions
from meshwright.kubernetes.status.served_objects import Raw
from meshwright.kubernetes.status.statements import Aspect, bounded, message, reason
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME as GATEWAY_CONTROLLER
from meshwright.mesh.gateway.references import CORE, ParentRef
from meshwright.mesh.kinds import GATEWAY, GATEWAY_API, LISTENER_SET, SERVICE, Kind
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

MESH_CONTROLLER: Final = "meshwright.dev/mesh-controller"
"""Name of the controller in the entries of Meshwright for Services as parents."""

CONTROLLERS: Final[Mapping[Kind, str]] = MappingProxyType(
    {SERVICE: MESH_CONTROLLER, GATEWAY: GATEWAY_CONTROLLER, LISTENER_SET: GATEWAY_CONTROLLER}
)
"""Kinds of parents with entries of Meshwright, with the name of the controller in these entries."""


@dataclass(frozen=True, slots=True)
class ParentEntry:
    """The conditions of a route for one parent."""

    parent: ParentRef
    conditions: Conditions


ParentEntries = tuple[ParentEntry, ...]


def wanted_entries(decided: Attachment, generation: int, rejected: Iterable[Problem] = ()) -> ParentEntries:
    """Return the entries of a route, first those of Services, without times of transitions.

    `rejected` are problems of parts of the route that proxies reject.
    """
    conditions = tuple(_programmed(tuple(rejected), generation))
    verdicts: tuple[ParentVerdict | GatewayVerdict, ...] = (*decided.parents, *decided.gateways)
    return tuple(
        ParentEntry(
            verdict.parent,
            (*_conditions(decided, verdict, generation), *(conditions if verdict.accepted else ())),
        )
        for verdict in verdicts
    )


def _programmed(rejected: tuple[Problem, ...], generation: int) -> Iterator[Condition]:
    # Without a rejection there is no such condition, so a rollout costs no writes.
    if rejected:
        code = min(problem.code for problem in rejected)
        yield Condition(Aspect.PROGRAMMED, FALSE, reason(code), message(rejected), generation)


def _conditions(
    decided: Attachment, verdict: ParentVerdict | GatewayVerdict, generation: int
) -> Iterator[Condition]:
    accepted = TRUE if verdict.accepted else FALSE
    yield Condition("Accepted", accepted, verdict.reason, bounded(verdict.message), generation)
    is_gateway = isinstance(verdict, GatewayVerdict)
    reason_of_references, text = resolution(
        decided.unresolved_at_gateways if is_gateway else decided.unresolved
    )
    resolved = TRUE if reason_of_references is ResolvedReason.RESOLVED else FALSE
    yield Condition("ResolvedRefs", resolved, reason_of_references, bounded(text), generation)
    # The specification wants this condition only where it is true.
    if decided.dropped and verdict.accepted:
        reason_of_drop = AcceptedReason.UNSUPPORTED_VALUE
        yield Condition("PartiallyInvalid", TRUE, reason_of_drop, bounded(decided.dropped), generation)


def refused_entries(
    raw: Raw, text: str, generation: int, serves: Callable[[ObjectKey], bool]
) -> ParentEntries:
    """Return the entries of a route that cannot be read; its parents are found in the object itself.

    `serves` returns whether a Gateway, or that of a ListenerSet, is served here; the others have controllers
    of their own.
    """
    condition = Condition("Accepted", FALSE, AcceptedReason.UNSUPPORTED_VALUE, bounded(text), generation)
    return tuple(
        ParentEntry(parent, (condition,))
        for parent, _ in _parents(raw)
        if parent.kind == SERVICE or serves(_named(raw, parent))
    )


def _named(raw: Raw, parent: ParentRef) -> ObjectKey:
    own = str((raw.get("metadata") or {}).get("namespace") or "")
    return ObjectKey(parent.kind, parent.namespace or Namespace(own), parent.name)


def own_entries(raw: Raw) -> ParentEntries:
    """Return the entries of Meshwright in the status of an object, in their order."""
    return tuple(
        ParentEntry(parent_of(entry.get("parentRef")), conditions_of(entry))
        for entry in _entries(raw)
        if _is_own(entry)
    )


def differ(wanted: ParentEntries, known: ParentEntries) -> bool:
    """Return whether the entries in the cluster must be written; times and the order do not count."""
    return {*map(_timeless, wanted)} != {*map(_timeless, known)}


def is_outdated(raw: Raw, generation: int) -> bool:
    """Return whether a decision about `generation` is older than the object, or than Meshwright's entries."""
    newest = [condition.generation for entry in own_entries(raw) for condition in entry.conditions]
    metadata = raw.get("metadata")
    current = metadata.get("generation") if isinstance(metadata, Mapping) else None
    return max([*newest, current if isinstance(current, int) else 0]) > generation


def merged_entries(raw: Raw, wanted: ParentEntries, now: datetime) -> list[Raw]:
    """Return the new `status.parents` of an object.

    Entries of other controllers keep their form and their order. An entry of Meshwright stays at its place;
    those of former parents are left out, and those of new parents follow at the end, in the order of the
    route's parents. The time of a condition's transition stays while its status stays.
    """
    written = dict(_parents(raw))
    missing = {entry.parent: entry for entry in wanted if entry.parent in written}
    result: list[Raw] = []
    for entry in _entries(raw):
        if not _is_own(entry):
            result.append(entry)
        elif (current := missing.pop(parent_of(entry.get("parentRef")), None)) is not None:
            result.append(_written(written[current.parent], current.conditions, conditions_of(entry), now))
    result.extend(
        _written(reference, missing[parent].conditions, (), now)
        for parent, reference in written.items()
        if parent in missing
    )
    return result


def parent_of(reference: object) -> ParentRef:
    """Return a parentRef of the API as a value, with the API's defaults: a Gateway without a kind."""
    fields = reference if isinstance(reference, Mapping) else {}
    group = str(fields.get("group", GATEWAY_API))
    kind = Kind(str(fields.get("kind", "Gateway")), "" if group == CORE else group)
    namespace, section, port = (fields.get(name) for name in ("namespace", "sectionName", "port"))
    return ParentRef(
        kind,
        str(fields.get("name") or ""),
        Namespace(str(namespace)) if namespace else None,
        str(section) if section else None,
        Port(port) if isinstance(port, int) else None,
        is_core=group == CORE,
    )


def _parents(raw: Raw) -> Iterator[tuple[ParentRef, Raw]]:
    """Yield the parents of a route that may have entries here, each with the reference as written."""
    spec = raw.get("spec")
    references = spec.get("parentRefs") if isinstance(spec, Mapping) else None
    for reference in references if isinstance(references, Sequence) else ():
        if isinstance(reference, Mapping) and (parent := parent_of(reference)).kind in CONTROLLERS:
            yield parent, reference


def _entries(raw: Raw) -> Iterable[Raw]:
    status = raw.get("status")
    entries = status.get("parents") if isinstance(status, Mapping) else None
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _is_own(entry: Raw) -> bool:
    return entry.get("controllerName") in CONTROLLERS.values()


def conditions_of(entry: Raw) -> Conditions:
    """Return the conditions of an entry in a status."""
    listed = entry.get("conditions")
    parsed = [Condition.parse(item) for item in listed] if isinstance(listed, list) else []
    return tuple(condition for condition in parsed if condition is not None)


def _timeless(entry: ParentEntry) -> ParentEntry:
    return replace(entry, conditions=tuple(replace(item, since=None) for item in entry.conditions))


def _written(reference: Raw, conditions: Conditions, before: Conditions, now: datetime) -> Raw:
    known = {condition.type: condition for condition in before}
    return {
        "parentRef": dict(reference),
        "controllerName": CONTROLLERS[parent_of(reference).kind],
        "conditions": [item.in_transition(known.get(item.type), now).written() for item in conditions],
    }
