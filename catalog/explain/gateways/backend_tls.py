"""Steps about the BackendTLSPolicies of backends, which gateways reach with TLS of the application."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of_object
from catalog.oracle.gateway import RouteMatch, Way
from catalog.relations.backend_tls.decision import deciding_policy, fault_of
from catalog.relations.backends.endpoints import endpoints
from catalog.store.gateway import backend_service
from catalog.store.view import View
from meshwright.mesh.gateway.backend_tls import BackendTLSPolicy
from meshwright.mesh.kinds import BACKEND_TLS_POLICY
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import ServiceKey, ServicePort


def protected(view: View, way: Way) -> Iterator[Step]:
    """Yield a step about the policy for a backend that gets requests, if there is a policy."""
    policy = deciding_policy(view, way.service, way.port)
    if policy is None:
        return
    key = ObjectKey.from_name(BACKEND_TLS_POLICY, policy.key)
    text = f"{key}: {_effect(policy)}."
    if _has_sidecar(view, way.service, way.port):
        text = (
            f"{key} is without effect: the gateway reaches endpoints with a sidecar with the TLS of the "
            "mesh, and the sidecar speaks plain text with the application."
        )
    yield Step(text, origin_of_object(view, key), depth=1)


def failing(view: View, found: RouteMatch) -> Iterator[Step]:
    """Yield a step for each backend of a match whose policy cannot verify any certificate."""
    for index, backend in enumerate(found.rule_value.backends):
        service = backend_service(backend.to)
        there = None if service is None else view.services.get(service)
        port = None if there is None or backend.to.port is None else there.port(backend.to.port)
        if service is None or port is None or _has_sidecar(view, service, port):
            continue
        policy = deciding_policy(view, service, port)
        if policy is not None and (fault := fault_of(view, policy)):
            key = ObjectKey.from_name(BACKEND_TLS_POLICY, policy.key)
            field = f"spec.rules[{found.rule}].backendRefs[{index}]"
            text = f"{field} fails: {key} cannot be used: {fault}."
            yield Step(text, origin_of_object(view, key), depth=1)


def _effect(policy: BackendTLSPolicy) -> str:
    names = " or ".join(name.name for name in policy.names) or policy.hostname
    authorities = ", ".join(f"{item.kind} {policy.key.namespace}/{item.name}" for item in policy.authorities)
    signed = authorities or "the system"
    return (
        f"the gateway connects with TLS and the server name {policy.hostname}; the certificate must be for "
        f"{names}, and signed by a CA of {signed}; otherwise the gateway answers 503"
    )


def _has_sidecar(view: View, service: ServiceKey, port: ServicePort) -> bool:
    return any(endpoint.identity is not None for endpoint in endpoints(view, service, port))
