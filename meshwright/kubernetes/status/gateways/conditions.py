"""Conditions of gateways and ListenerSets, and of their listeners, in the words of the specification."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from catalog.relations.gateways.client_validation import REASONS
from catalog.relations.gateways.set_states import SetReason, SetState
from catalog.relations.gateways.states import GatewayState, ListenerState
from catalog.relations.gateways.verdicts import ListenerReason
from meshwright.kubernetes.status.conditions.conditions import FALSE, TRUE, Condition, Conditions
from meshwright.kubernetes.status.gateways.own_status import (
    ACCEPTED,
    CONFLICTED,
    INSECURE_VALIDATION,
    PROGRAMMED,
    RESOLVED_REFS,
    ClassStatus,
    GatewayStatus,
    ListenerSetStatus,
    ListenerStatus,
)
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.kubernetes.status.statements import bounded
from meshwright.mesh.gateway.features import GATEWAY_FEATURES
from meshwright.mesh.gateway.gateways import GatewayClass
from meshwright.mesh.kinds import CONFIG_MAP

PENDING: Final = "Pending"
PARENT_NOT_PROGRAMMED: Final = "ParentNotProgrammed"
NO_RESOURCES: Final = "NoResources"
_INVALID: Final = "Invalid"
_ALL_RESOLVED: Final = "all references are resolved"
_CONFLICTS: Final = (ListenerReason.PROTOCOL_CONFLICT, ListenerReason.HOSTNAME_CONFLICT)

MAXIMUM_ADDRESSES: Final = 16
"""Addresses in a status, by the schema of the Gateway API."""


def gateway_status(
    state: GatewayState, progress: Progress, generation: int, before: GatewayStatus, *, settled: bool
) -> GatewayStatus:
    """Return the wanted status of a gateway, without times of transitions.

    `progress` counts the connected proxies, and those that acknowledged what they are served. `before` is the
    status in the cluster: once Programmed, a gateway stays so in this generation while proxies are connected,
    because routes and endpoints change all the time. Until `settled` some proxies are not connected yet.
    """
    programmed = _programmed(state, progress, generation, before.conditions, settled=settled)
    accepted = Condition(
        ACCEPTED, TRUE if state.accepted else FALSE, state.reason, bounded(state.message), generation
    )
    return GatewayStatus(
        (accepted, programmed, _gateway_resolved(state, generation), *_insecure(state, generation)),
        tuple(_listener_status(item, programmed, generation) for item in state.listeners),
        tuple((item.type, item.value) for item in state.addresses[:MAXIMUM_ADDRESSES]),
        state.sets,
    )


def listener_set_status(
    state: SetState, progress: Progress, generation: int, before: ListenerSetStatus, *, settled: bool
) -> ListenerSetStatus:
    """Return the wanted status of a ListenerSet; `progress` is that of its gateway."""
    accepted = Condition(
        ACCEPTED, TRUE if state.accepted else FALSE, state.reason, bounded(state.message), generation
    )
    programmed = _programmed_set(state, progress, generation, before.conditions, settled=settled)
    return ListenerSetStatus(
        (accepted, programmed),
        tuple(_listener_status(item, programmed, generation) for item in state.listeners),
    )


def _programmed_set(
    state: SetState, progress: Progress, generation: int, before: Conditions, *, settled: bool
) -> Condition:
    if not state.accepted:
        is_parents = state.reason is SetReason.PARENT_NOT_ACCEPTED
        reason = PARENT_NOT_PROGRAMMED if is_parents else state.reason
        return Condition(PROGRAMMED, FALSE, reason, bounded(state.message), generation)
    found = _programmed(state.gateway, progress, generation, before, settled=settled)
    if found.status == TRUE or found.reason == PENDING:
        return found
    return replace(found, reason=PARENT_NOT_PROGRAMMED)


def _listener_status(state: ListenerState, programmed: Condition, generation: int) -> ListenerStatus:
    verdict = state.verdict
    conditions = tuple(_of_listener(state, programmed, generation))
    return ListenerStatus(verdict.listener.name, verdict.kinds, state.attached, conditions)


def class_status(found: GatewayClass, generation: int) -> ClassStatus:
    """Return the wanted status of a class of Meshwright, without times of transitions."""
    if found.parameters is None or found.parameters.kind == CONFIG_MAP:
        accepted = Condition(ACCEPTED, TRUE, "Accepted", "Meshwright serves the gateways of this class")
    else:
        message = f"spec.parametersRef is a {found.parameters.kind.full}: must be a ConfigMap"
        accepted = Condition(ACCEPTED, FALSE, "InvalidParameters", message)
    return ClassStatus((_at(accepted, generation),), GATEWAY_FEATURES)


def _at(condition: Condition, generation: int) -> Condition:
    return Condition(condition.type, condition.status, condition.reason, condition.message, generation)


def _programmed(
    state: GatewayState, progress: Progress, generation: int, before: Conditions, *, settled: bool
) -> Condition:
    def condition(status: str, reason: str, message: str) -> Condition:
        return Condition(PROGRAMMED, status, reason, bounded(message), generation)

    if not state.accepted:
        return condition(FALSE, _INVALID, "the gateway is not accepted")
    if state.unusable:
        message = f"the workloads that serve the gateway lack the address {', '.join(state.unusable)}"
        return condition(FALSE, "AddressNotUsable", message)
    if not state.addresses:
        namespace, name = state.gateway.namespace, state.gateway.name
        message = (
            f"the gateway needs a workload that serves it: a Workload of namespace {namespace} must have "
            f"`gateway: {name}` in its spec"
        )
        return condition(FALSE, "AddressNotAssigned", message)
    # Of another generation nothing is known yet.
    was = any(
        item.type == PROGRAMMED and item.status == TRUE and item.generation == generation for item in before
    )
    if not progress.total and not progress.unknown and not (was and not settled):
        return condition(FALSE, NO_RESOURCES, "the proxies of the gateway are not connected")
    if not was and not progress.is_done:
        elsewhere = f"; unknown at {', '.join(progress.unknown)}" if progress.unknown else ""
        message = f"applied by {progress.applied} of {progress.total} connected proxies{elsewhere}"
        return condition(FALSE, PENDING, message)
    return condition(TRUE, "Programmed", "the connected proxies of the gateway have applied it")


def _of_listener(state: ListenerState, programmed: Condition, generation: int) -> Iterator[Condition]:
    verdict = state.verdict
    accepted = TRUE if verdict.accepted else FALSE
    yield Condition(ACCEPTED, accepted, verdict.reason, bounded(verdict.message), generation)
    if verdict.reason in _CONFLICTS:
        yield Condition(CONFLICTED, TRUE, verdict.reason, bounded(verdict.message), generation)
    else:
        yield Condition(
            CONFLICTED,
            FALSE,
            "NoConflicts",
            "the listener differs from the others by port or host name",
            generation,
        )
    yield _resolved(state, generation)
    if not verdict.in_force:
        # The reason of a listener of a ListenerSet is that of its conflict, as the conformance suite has it.
        is_lost = verdict.listener_set is not None and verdict.reason in _CONFLICTS
        reason = verdict.reason if is_lost else _INVALID
        yield Condition(PROGRAMMED, FALSE, reason, "the listener is not in force", generation)
    elif programmed.status == TRUE:
        yield Condition(PROGRAMMED, TRUE, "Programmed", programmed.message, generation)
    else:
        yield Condition(PROGRAMMED, FALSE, PENDING, programmed.message, generation)


def _insecure(state: GatewayState, generation: int) -> Iterator[Condition]:
    """Yield the warning of a gateway whose validation of clients admits every client; absent otherwise."""
    if state.insecure:
        message = "clients without a valid certificate are admitted (mode AllowInsecureFallback)"
        yield Condition(INSECURE_VALIDATION, TRUE, "ConfigurationChanged", message, generation)


def _gateway_resolved(state: GatewayState, generation: int) -> Condition:
    """Return the condition for the gateway's own reference, which also sums up those of its listeners."""
    if state.broken is not None:
        return Condition(RESOLVED_REFS, FALSE, state.broken.reason, bounded(state.broken.message), generation)
    bad = [item for item in state.listeners if _resolved(item, generation).status == FALSE]
    if bad:
        listed = ", ".join(item.verdict.listener.name for item in bad)
        message = f"listeners with references that are not resolved: {listed}"
        return Condition(RESOLVED_REFS, FALSE, "ListenersNotResolved", bounded(message), generation)
    return Condition(RESOLVED_REFS, TRUE, "ResolvedRefs", _ALL_RESOLVED, generation)


def _resolved(state: ListenerState, generation: int) -> Condition:
    unknown = ", ".join(kind.full for kind in state.verdict.unknown_kinds)
    if unknown:
        message = (
            f"routes of these kinds cannot attach to protocol {state.verdict.listener.protocol}: {unknown}"
        )
        return Condition(RESOLVED_REFS, FALSE, "InvalidRouteKinds", bounded(message), generation)
    clients = state.verdict.clients
    if clients is not None and clients.broken:
        message = "; ".join(item.message for item in clients.broken)
        reason = REASONS[clients.broken[0].reason]
        return Condition(RESOLVED_REFS, FALSE, reason, bounded(message), generation)
    if broken := state.verdict.broken:
        # One condition has one reason, and each broken certificate may have its own: the first one is shown.
        message = "; ".join(item.message for item in broken)
        return Condition(RESOLVED_REFS, FALSE, broken[0].reason, bounded(message), generation)
    return Condition(RESOLVED_REFS, TRUE, "ResolvedRefs", _ALL_RESOLVED, generation)
