"""Verdicts about routes of the Gateway API, with reasons in the words of the specification.

`catalog.relations.attachment` derives them. Policy, status, lint and explain only read them.
"""

import dataclasses
import enum
from dataclasses import dataclass

from catalog.relations.gateways.verdicts import GatewayVerdict
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import ServiceKey, ServicePort


class AcceptedReason(enum.StrEnum):
    """Reasons of the condition `Accepted` for a parent; only ACCEPTED puts the route in force there."""

    ACCEPTED = "Accepted"
    NO_MATCHING_PARENT = "NoMatchingParent"
    UNSUPPORTED_VALUE = "UnsupportedValue"
    # The specification demands this refusal (GEP-1294) without a constant for the reason.
    CONFLICTED = "Conflicted"


class ResolvedReason(enum.StrEnum):
    """Reasons of the condition `ResolvedRefs`; with RESOLVED every reference is good."""

    RESOLVED = "ResolvedRefs"
    BACKEND_NOT_FOUND = "BackendNotFound"
    INVALID_KIND = "InvalidKind"
    UNSUPPORTED_PROTOCOL = "UnsupportedProtocol"
    REF_NOT_PERMITTED = "RefNotPermitted"


@dataclass(frozen=True, slots=True)
class ParentVerdict:
    """Verdict about one parent of a route: `parent` as written, and the named Service.

    `ports` are the ports of the Service where the route is in force; empty unless accepted.
    """

    parent: ParentRef
    service: ServiceKey
    reason: AcceptedReason
    message: str
    ports: tuple[Port, ...] = ()

    @property
    def accepted(self) -> bool:
        """True if the route is in force at this parent."""
        return self.reason is AcceptedReason.ACCEPTED


@dataclass(frozen=True, slots=True)
class ServicePlace:
    """A port of an existing Service, as the target of a reference."""

    service: ServiceKey
    port: ServicePort


@dataclass(frozen=True, slots=True)
class BrokenReference:
    """A broken reference: the share of requests is answered with an error.

    `field` is the field of the route's manifest, for example `spec.rules[0].backendRefs[1]`. `target` is the
    object of a reference to a missing Service, or to an object without a ReferenceGrant.
    """

    reason: ResolvedReason
    message: str
    field: str
    # The message names the target, so it is no difference of its own.
    target: ObjectKey | None = dataclasses.field(default=None, compare=False)


Resolution = ServicePlace | BrokenReference


@dataclass(frozen=True, slots=True)
class ResolvedBackend:
    """A backend of a rule, with the receivers of copies by its own filters, in the filters' order."""

    to: Resolution
    mirrors: tuple[Resolution, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedRule:
    """The references of a rule, in the order of the backends and mirrors.

    `unknown` are filters of the rule without an implementation; requests of the rule then fail.
    """

    backends: tuple[ResolvedBackend, ...] = ()
    mirrors: tuple[Resolution, ...] = ()
    unknown: tuple[BrokenReference, ...] = ()

    @property
    def unresolved(self) -> tuple[BrokenReference, ...]:
        """The broken references of the rule, in the order of the fields."""
        everything = (
            *self.unknown,
            *self.mirrors,
            *(item for backend in self.backends for item in (backend.to, *backend.mirrors)),
        )
        return tuple(item for item in everything if isinstance(item, BrokenReference))


@dataclass(frozen=True, slots=True)
class Attachment:
    """Everything decided about one route.

    `parents` has a verdict for each Service among the route's parents, and `gateways` one for each gateway
    served here, both in the route's order. `rules` has the references of each rule, and `rules_at_gateways`
    the same for gateways, which need grants; empty without gateways. `dropped` has the message
    about rules out of force although the others are, or is empty; in the words of the specification the
    route is then partially invalid.
    """

    route: ObjectKey
    parents: tuple[ParentVerdict, ...] = ()
    rules: tuple[ResolvedRule, ...] = ()
    dropped: str = ""
    gateways: tuple[GatewayVerdict, ...] = ()
    rules_at_gateways: tuple[ResolvedRule, ...] = ()

    @property
    def unresolved(self) -> tuple[BrokenReference, ...]:
        """All broken references of the route in the mesh, in the order of the fields."""
        return _unresolved(self.rules)

    @property
    def unresolved_at_gateways(self) -> tuple[BrokenReference, ...]:
        """All broken references of the route for gateways, in the order of the fields."""
        return _unresolved(self.rules_at_gateways)


def resolution(unresolved: tuple[BrokenReference, ...]) -> tuple[ResolvedReason, str]:
    """Return reason and message of the condition `ResolvedRefs`: those of the first broken reference."""
    if not unresolved:
        return ResolvedReason.RESOLVED, "all references are resolved"
    more = f"; and {len(unresolved) - 1} more" if len(unresolved) > 1 else ""
    return unresolved[0].reason, f"{unresolved[0].field}: {unresolved[0].message}{more}"


def _unresolved(rules: tuple[ResolvedRule, ...]) -> tuple[BrokenReference, ...]:
    return tuple(item for rule in rules for item in rule.unresolved)
