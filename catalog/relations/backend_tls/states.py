"""State of a BackendTLSPolicy for the status: the gateways that use its targets, acceptance and references.

A gateway uses a Service if a route attached to the gateway has the Service as backend, or copies requests to
it. A policy without such a gateway has no effect, and no status.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from catalog.relations.backend_tls.decision import authorities_of, fault_of, winner
from catalog.relations.gateways.ca_certificates import CaReason
from catalog.relations.gateways.route_listeners import gateway_verdicts
from catalog.store.gateway import backend_tls_policies, routes_by_backend
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.backend_tls import SYSTEM, BackendTLSPolicy, PolicyTarget
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


class PolicyReason(enum.StrEnum):
    """Reasons of a policy's condition `Accepted`."""

    ACCEPTED = "Accepted"
    CONFLICTED = "Conflicted"
    INVALID = "Invalid"
    NO_VALID_CA_CERTIFICATE = "NoValidCACertificate"
    TARGET_NOT_FOUND = "TargetNotFound"


class ReferenceReason(enum.StrEnum):
    """Reasons of a policy's condition `ResolvedRefs`; with RESOLVED every reference is good."""

    RESOLVED = "ResolvedRefs"
    INVALID_CA_CERTIFICATE_REF = "InvalidCACertificateRef"
    INVALID_KIND = "InvalidKind"


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """A target of a policy: why the target is missing, or which older policy decides; empty if in force."""

    target: PolicyTarget
    missing: str = ""
    conflict: str = ""

    @property
    def in_force(self) -> bool:
        """True if the policy decides about the target."""
        return not self.missing and not self.conflict


@dataclass(frozen=True, slots=True)
class PolicyState:
    """State of a policy, the same at each of its gateways, which are sorted."""

    policy: PolicyKey
    gateways: tuple[PolicyKey, ...]
    targets: tuple[TargetVerdict, ...]
    reason: PolicyReason
    message: str
    reference_reason: ReferenceReason
    reference_message: str

    @property
    def accepted(self) -> bool:
        """True if the policy is in force for one of its targets, and can verify certificates."""
        return self.reason is PolicyReason.ACCEPTED

    @property
    def resolved(self) -> bool:
        """True if all references to CA certificates are good."""
        return self.reference_reason is ReferenceReason.RESOLVED


@derived
def policy_state(view: View, key: PolicyKey) -> PolicyState | None:
    """Return the state of a policy; None for a missing policy."""
    policy = backend_tls_policies(view).get(key)
    if policy is None:
        return None
    gateways = {gateway for service in policy.services for gateway in gateways_calling(view, service)}
    targets = tuple(_target(view, policy, target) for target in policy.targets)
    accepted, resolved = _acceptance(view, policy, targets), _references(view, policy)
    return PolicyState(key, tuple(sorted(gateways)), targets, *accepted, *resolved)


@derived
def gateways_calling(view: View, service: ServiceKey) -> tuple[PolicyKey, ...]:
    """Return the gateways with an attached route to a Service, sorted."""
    routes = routes_by_backend(view).get(service, ())
    verdicts = (verdict for route in routes for verdict in gateway_verdicts(view, route))
    return tuple(sorted({verdict.gateway for verdict in verdicts if verdict.accepted}))


def _target(view: View, policy: BackendTLSPolicy, target: PolicyTarget) -> TargetVerdict:
    key = policy.service_of(target)
    if key is None:
        return TargetVerdict(target, f"{target.kind.full} {target.name} is not a Service")
    service = view.services.get(key)
    if service is None:
        return TargetVerdict(target, f"{SERVICE} {key} does not exist")
    if target.section is not None and all(port.name != target.section for port in service.ports):
        return TargetVerdict(target, f"{SERVICE} {key} does not have a port named {target.section}")
    other = winner(view, key, target.section)
    if other is None or other.key == policy.key:
        return TargetVerdict(target)
    port = "" if target.section is None else f"port {target.section} of "
    why = "its name comes first" if other.created == policy.created else "it is older"
    return TargetVerdict(target, conflict=f"{other.key} decides about {port}{SERVICE} {key}, because {why}")


def _acceptance(
    view: View, policy: BackendTLSPolicy, targets: tuple[TargetVerdict, ...]
) -> tuple[PolicyReason, str]:
    """Return reason and message of the condition `Accepted`."""
    # The specification has one condition for all targets, so one target in force is enough.
    if not any(verdict.in_force for verdict in targets):
        lost = "; ".join(verdict.conflict for verdict in targets if verdict.conflict)
        if lost:
            return PolicyReason.CONFLICTED, lost
        return PolicyReason.TARGET_NOT_FOUND, "; ".join(verdict.missing for verdict in targets)
    if fault := fault_of(view, policy):
        is_about_ca = not policy.dropped and not policy.well_known
        reason = PolicyReason.NO_VALID_CA_CERTIFICATE if is_about_ca else PolicyReason.INVALID
        return reason, f"requests to the targets fail: {fault}"
    return PolicyReason.ACCEPTED, "; ".join(("the policy is in force", *_out_of_force(targets)))


def _out_of_force(targets: tuple[TargetVerdict, ...]) -> Iterator[str]:
    for verdict in targets:
        if not verdict.in_force:
            yield verdict.missing or verdict.conflict


def _references(view: View, policy: BackendTLSPolicy) -> tuple[ReferenceReason, str]:
    """Return reason and message of the condition `ResolvedRefs`."""
    broken = authorities_of(view, policy.key).broken
    if not broken:
        used = f"the well-known CA certificates {SYSTEM}" if policy.well_known else "all CA certificates"
        return ReferenceReason.RESOLVED, f"{used} can be used"
    is_kind = broken[0].reason is CaReason.KIND
    reason = ReferenceReason.INVALID_KIND if is_kind else ReferenceReason.INVALID_CA_CERTIFICATE_REF
    return reason, "; ".join(item.message for item in broken)
