"""Problems of BackendTLSPolicies: targets, CA certificates, and policies without effect."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.wording import Place, listed, meant
from catalog.policy.outbound import is_plain
from catalog.relations.backend_tls.decision import authorities_of, fault_of
from catalog.relations.backend_tls.states import PolicyState, TargetVerdict, policy_state
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.gateways.ca_certificates import BrokenCa
from catalog.relations.gateways.classes import served_gateway
from catalog.store.gateway import ca_bundles, gateways
from catalog.store.view import View
from meshwright.mesh.gateway.backend_tls import BackendTLSPolicy
from meshwright.mesh.kinds import BACKEND_TLS_POLICY
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

_AUTHORITIES = "spec.validation.caCertificateRefs"


def of_policy(lint: Lint, policy: BackendTLSPolicy) -> Iterator[Problem]:
    """Yield the problems of a policy; one beside Gateways of other controllers alone has none here."""
    view, state = lint.view, policy_state(lint.view, policy.key)
    if state is None or (not state.gateways and _is_of_others(view)):
        return
    place = Place(view, ObjectKey.from_name(BACKEND_TLS_POLICY, policy.key))
    for index, verdict in enumerate(state.targets):
        yield from _of_target(place, f"spec.targetRefs[{index}]", policy, verdict)
    if any(verdict.in_force for verdict in state.targets):
        yield from _of_authorities(place, policy)
        yield from _of_use(place, state)
    for field in policy.unused:
        wanted = "Meshwright does not support this field, so the field has no effect. Delete the field."
        yield place.warning(Code.GATEWAY_FIELD_NOT_USED, field, "", wanted)


def _is_of_others(view: View) -> bool:
    """Return whether there are Gateways, and none is served here."""
    there = gateways(view)
    # Without any Gateway the policy is for one that is still to be written.
    return bool(there) and all(served_gateway(view, key) is None for key in there)


def _of_target(
    place: Place, field: str, policy: BackendTLSPolicy, verdict: TargetVerdict
) -> Iterator[Problem]:
    target, view = verdict.target, place.view
    if verdict.missing:
        names = [key.name for key in view.services if key.namespace == policy.key.namespace]
        key = policy.service_of(target)
        near = meant([target.name], names) if key is not None and key not in view.services else ""
        wanted = (
            f"{verdict.missing}{near}, so the policy does not protect this target. Correct the reference, or "
            "create the Service."
        )
        yield place.error(Code.BACKEND_TLS_TARGET, field, target.name, wanted)
    elif verdict.conflict:
        wanted = (
            f"BackendTLSPolicy {verdict.conflict} (Conflicted), so this policy is out of force there. "
            "Delete one of the policies, or give each a sectionName of its own."
        )
        yield place.error(Code.BACKEND_TLS_CONFLICT, field, target.name, wanted)
    elif with_sidecar := _ports_with_sidecar(view, policy, verdict):
        wanted = (
            f"Endpoints behind {listed(with_sidecar)} have a sidecar. Gateways connect to the sidecar with "
            "the TLS of the mesh, so the policy is without effect, and the application gets plain text from "
            "its sidecar. Let the application listen in plain text, or run it without a sidecar."
        )
        yield place.warning(Code.BACKEND_TLS_SIDECAR, field, target.name, wanted)


def _ports_with_sidecar(view: View, policy: BackendTLSPolicy, verdict: TargetVerdict) -> list[str]:
    key, section = policy.service_of(verdict.target), verdict.target.section
    service = None if key is None else view.services.get(key)
    if key is None or service is None:
        return []
    return [
        f"port {port.port}"
        for port in service.ports
        if section in (None, port.name) and endpoints(view, key, port) and not is_plain(view, (key, port))
    ]


def _of_authorities(place: Place, policy: BackendTLSPolicy) -> Iterator[Problem]:
    fault, broken = fault_of(place.view, policy), authorities_of(place.view, policy.key).broken
    if fault and not broken:
        field = "spec.validation.wellKnownCACertificates" if policy.well_known else "spec.validation"
        wanted = f"The policy cannot be used: {fault}. Requests of Gateways to the targets fail with 500."
        yield place.error(Code.BACKEND_TLS_AUTHORITY, field, policy.well_known, wanted)
    for item in broken:
        near = _similar(place.view, policy, item)
        text = f"{item.message[:1].upper()}{item.message[1:]}{near}"
        if fault:
            effect = "Without any CA certificate, requests of Gateways to the targets fail with 500"
            wanted = f"{text}. {effect}. Name a ConfigMap with CA certificates in ca.crt."
            yield place.error(Code.BACKEND_TLS_AUTHORITY, _AUTHORITIES, "", wanted)
        else:
            wanted = f"{text}. The other CA certificates are in force. Correct or delete the reference."
            yield place.warning(Code.BACKEND_TLS_AUTHORITY, _AUTHORITIES, "", wanted)


def _similar(view: View, policy: BackendTLSPolicy, broken: BrokenCa) -> str:
    """Return a clause with a similar ConfigMap of the policy's namespace."""
    if broken.config_map is None:
        return ""
    there = [key.name for key in ca_bundles(view) if key.namespace == policy.key.namespace]
    return meant([broken.config_map.name], there)


def _of_use(place: Place, state: PolicyState) -> Iterator[Problem]:
    if not state.gateways:
        wanted = (
            "The Gateways of Meshwright lack a route to the targets, so the policy is without effect: it is "
            "for connections of Gateways, and callers in the mesh ignore it. Add a route, or delete the "
            "policy."
        )
        yield place.warning(Code.BACKEND_TLS_UNUSED, "spec.targetRefs", "", wanted)
