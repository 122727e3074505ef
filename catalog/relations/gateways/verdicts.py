"""Verdicts about gateways, with reasons in the words of the specification."""

import enum
from dataclasses import dataclass

from meshwright.mesh.gateway.gateways import Listener
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.kinds import Kind
from meshwright.mesh.policies.smi import PolicyKey


class ListenerReason(enum.StrEnum):
    """Reasons of a listener's condition `Accepted`; only ACCEPTED puts the listener in force.

    A listener in a conflict also has the condition `Conflicted`, with the same reason.
    """

    ACCEPTED = "Accepted"
    UNSUPPORTED_PROTOCOL = "UnsupportedProtocol"
    UNSUPPORTED_VALUE = "UnsupportedValue"
    PROTOCOL_CONFLICT = "ProtocolConflict"
    HOSTNAME_CONFLICT = "HostnameConflict"


@dataclass(frozen=True, slots=True)
class ListenerVerdict:
    """Verdict about a listener: whether it is in force, and `kinds` of routes that may attach.

    `unknown_kinds` are kinds of `allowedRoutes` that cannot attach to its protocol; the condition
    `ResolvedRefs` is False then, with the reason `InvalidRouteKinds`.
    """

    listener: Listener
    reason: ListenerReason
    message: str
    kinds: tuple[Kind, ...] = ()
    unknown_kinds: tuple[Kind, ...] = ()

    @property
    def accepted(self) -> bool:
        """True if the listener is in force."""
        return self.reason is ListenerReason.ACCEPTED


class AttachedReason(enum.StrEnum):
    """Reasons of a route's condition `Accepted` for a gateway as parent."""

    ACCEPTED = "Accepted"
    NO_MATCHING_PARENT = "NoMatchingParent"
    NOT_ALLOWED_BY_LISTENERS = "NotAllowedByListeners"
    NO_MATCHING_LISTENER_HOSTNAME = "NoMatchingListenerHostname"
    UNSUPPORTED_VALUE = "UnsupportedValue"


@dataclass(frozen=True, slots=True)
class GatewayVerdict:
    """Verdict about one parent of a route: `parent` as written, and the named gateway.

    `listeners` are the names of the listeners to which the route is attached, in the gateway's order; empty
    unless accepted. A route may be attached to a listener that is not in force.
    """

    parent: ParentRef
    gateway: PolicyKey
    reason: AttachedReason
    message: str
    listeners: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """True if the route is attached to a listener of this parent."""
        return self.reason is AttachedReason.ACCEPTED
