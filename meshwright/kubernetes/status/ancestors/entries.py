"""Entries of `status.ancestors` as values, and their place among the entries of other controllers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from catalog.relations.backend_tls.states import PolicyState
from meshwright.kubernetes.status.conditions.conditions import FALSE, TRUE, Condition, Conditions
from meshwright.kubernetes.status.parents.entries import conditions_of, parent_of
from meshwright.kubernetes.status.served_objects import Raw
from meshwright.kubernetes.status.statements import Aspect, bounded, message, reason
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME
from meshwright.mesh.kinds import GATEWAY
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem

MOST: Final = 16
"""Maximum number of entries in a status, those of other controllers included."""


@dataclass(frozen=True, slots=True)
class AncestorEntry:
    """The conditions of a policy for one gateway."""

    gateway: PolicyKey
    conditions: Conditions


AncestorEntries = tuple[AncestorEntry, ...]


def wanted_ancestors(
    state: PolicyState, generation: int, rejected: Iterable[Problem] = ()
) -> AncestorEntries:
    """Return the entries of a policy, without times of transitions.

    `rejected` are problems of parts of the policy that proxies reject.
    """
    conditions = tuple(_conditions(state, generation, tuple(rejected)))
    return tuple(AncestorEntry(gateway, conditions) for gateway in state.gateways)


def _conditions(state: PolicyState, generation: int, rejected: tuple[Problem, ...]) -> Iterator[Condition]:
    accepted, resolved = (TRUE if holds else FALSE for holds in (state.accepted, state.resolved))
    yield Condition("Accepted", accepted, state.reason, bounded(state.message), generation)
    text = bounded(state.reference_message)
    yield Condition("ResolvedRefs", resolved, state.reference_reason, text, generation)
    # Without a rejection there is no such condition, so a rollout costs no writes.
    if rejected:
        code = min(problem.code for problem in rejected)
        yield Condition(Aspect.PROGRAMMED, FALSE, reason(code), message(rejected), generation)


def own_ancestors(raw: Raw) -> AncestorEntries:
    """Return the entries of Meshwright in the status of an object, in their order."""
    return tuple(
        AncestorEntry(_gateway(raw, entry), conditions_of(entry)) for entry in _entries(raw) if _is_own(entry)
    )


def differ(wanted: AncestorEntries, known: AncestorEntries) -> bool:
    """Return whether the entries in the cluster must be written; times and the order do not count."""
    return {*map(_timeless, wanted)} != {*map(_timeless, known)}


def is_outdated(raw: Raw, generation: int) -> bool:
    """Return whether a decision about `generation` is older than the object, or than Meshwright's entries."""
    newest = [condition.generation for entry in own_ancestors(raw) for condition in entry.conditions]
    metadata = raw.get("metadata")
    current = metadata.get("generation") if isinstance(metadata, Mapping) else None
    return max([*newest, current if isinstance(current, int) else 0]) > generation


def merged_ancestors(raw: Raw, wanted: AncestorEntries, now: datetime) -> list[Raw]:
    """Return the new `status.ancestors` of an object.

    Entries of other controllers keep their form and their order. An entry of Meshwright stays at its place;
    those of former gateways are left out, and those of new gateways follow at the end, as far as the list has
    room. The time of a condition's transition stays while its status stays.
    """
    missing = {entry.gateway: entry for entry in wanted}
    result: list[Raw] = []
    for entry in _entries(raw):
        if not _is_own(entry):
            result.append(entry)
        elif (current := missing.pop(_gateway(raw, entry), None)) is not None:
            result.append(_written(current, conditions_of(entry), now))
    result.extend(_written(entry, (), now) for entry in missing.values())
    return result if len(result) <= MOST else _fitting(result)


def _fitting(entries: list[Raw]) -> list[Raw]:
    """Return the entries of other controllers, and as many of Meshwright's as the list has room for."""
    room = MOST - sum(not _is_own(entry) for entry in entries)
    kept: list[Raw] = []
    for entry in entries:
        room -= _is_own(entry)
        if not _is_own(entry) or room >= 0:
            kept.append(entry)
    return kept


def _entries(raw: Raw) -> Iterable[Raw]:
    status = raw.get("status")
    entries = status.get("ancestors") if isinstance(status, Mapping) else None
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _is_own(entry: Raw) -> bool:
    return entry.get("controllerName") == CONTROLLER_NAME


def _gateway(raw: Raw, entry: Raw) -> PolicyKey:
    """Return the gateway of an entry; the namespace is the object's by default."""
    ancestor = parent_of(entry.get("ancestorRef"))
    own = str((raw.get("metadata") or {}).get("namespace") or "")
    return PolicyKey(ancestor.namespace or Namespace(own), ancestor.name)


def _timeless(entry: AncestorEntry) -> AncestorEntry:
    return replace(entry, conditions=tuple(replace(item, since=None) for item in entry.conditions))


def _written(entry: AncestorEntry, before: Conditions, now: datetime) -> Raw:
    known = {condition.type: condition for condition in before}
    return {
        "ancestorRef": {
            "group": GATEWAY.group,
            "kind": GATEWAY.name,
            "namespace": entry.gateway.namespace,
            "name": entry.gateway.name,
        },
        "controllerName": CONTROLLER_NAME,
        "conditions": [item.in_transition(known.get(item.type), now).written() for item in entry.conditions],
    }
