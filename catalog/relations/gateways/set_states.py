"""State of a ListenerSet for the status: acceptance, and listeners with attached routes.

For example, a set with a good listener and one that conflicts with the Gateway's is accepted, with the reason
ListenersNotValid. A set without a listener in force is refused.
"""

import enum
from dataclasses import dataclass

from catalog.relations.gateways.listener_sets import allows_set
from catalog.relations.gateways.listeners import listeners_of_set
from catalog.relations.gateways.route_listeners import routes_at_listener
from catalog.relations.gateways.states import GatewayState, ListenerState, gateway_state
from catalog.store.gateway import gateways, listener_sets
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.policies.smi import PolicyKey


class SetReason(enum.StrEnum):
    """Reasons of a ListenerSet's condition `Accepted`; with LISTENERS_NOT_VALID it is True or False."""

    ACCEPTED = "Accepted"
    NOT_ALLOWED = "NotAllowed"
    PARENT_NOT_ACCEPTED = "ParentNotAccepted"
    LISTENERS_NOT_VALID = "ListenersNotValid"


@dataclass(frozen=True, slots=True)
class SetState:
    """State of a ListenerSet of a gateway of Meshwright; a set that is not allowed has no listeners."""

    gateway: GatewayState
    accepted: bool
    reason: SetReason
    message: str
    listeners: tuple[ListenerState, ...] = ()


@derived
def set_state(view: View, key: PolicyKey) -> SetState | None:
    """Return the state of a ListenerSet; None for a missing one, and for one of a foreign gateway."""
    found = listener_sets(view).get(key)
    gateway = None if found is None or found.gateway is None else gateway_state(view, found.gateway)
    if found is None or gateway is None:
        return None
    if not allows_set(view, gateways(view)[gateway.gateway], found):
        message = (
            f"Gateway {gateway.gateway} does not allow ListenerSets of namespace {key.namespace} in "
            "spec.allowedListeners"
        )
        return SetState(gateway, False, SetReason.NOT_ALLOWED, message)
    listeners = tuple(
        ListenerState(item, len(routes_at_listener(view, gateway.gateway, item.listener.name, key)))
        for item in listeners_of_set(view, gateway.gateway, key)
    )
    return SetState(gateway, *_acceptance(gateway, listeners), listeners)


def _acceptance(gateway: GatewayState, listeners: tuple[ListenerState, ...]) -> tuple[bool, SetReason, str]:
    """Return status, reason and message of the condition `Accepted`."""
    if not gateway.accepted:
        message = f"Gateway {gateway.gateway} is not accepted ({gateway.reason})"
        return False, SetReason.PARENT_NOT_ACCEPTED, message
    # Unlike with a Gateway, a listener without a certificate counts as bad (ListenerSetReferenceGrant).
    bad = [item.verdict for item in listeners if not item.verdict.in_force]
    if not bad:
        return True, SetReason.ACCEPTED, "all listeners are in force"
    message = "listeners out of force: " + "; ".join(
        f"{verdict.listener.name} ({verdict.message})" for verdict in bad
    )
    return len(bad) < len(listeners), SetReason.LISTENERS_NOT_VALID, message
