"""The BackendTLSPolicy for a port of a Service: one for the port alone before one for the Service.

Among policies for the same target the oldest decides, also if it is invalid, and by name among policies of
one age. For example, of the policies `a` for Service `web`, `b` for port `https` of it, and a younger `c` for
the same port, `b` decides about `https`, and `a` about all other ports.
"""

from collections.abc import Iterator

from catalog.relations.gateways.ca_certificates import CaCertificates, ca_certificates
from catalog.store.gateway import backend_policies_by_service, backend_tls_policies
from catalog.store.precedence import age
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.backend_tls import SYSTEM, BackendTLSPolicy, PolicyTarget
from meshwright.mesh.kinds import BACKEND_TLS_POLICY
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey, ServicePort


@derived
def deciding_policy(view: View, service: ServiceKey, port: ServicePort) -> BackendTLSPolicy | None:
    """Return the policy for a port of a Service; None if gateways connect without TLS of the backend."""
    return winner(view, service, port.name or None) or winner(view, service, None)


@derived
def winner(view: View, service: ServiceKey, section: str | None) -> BackendTLSPolicy | None:
    """Return the deciding policy among those for a named port of a Service, or with None for the Service."""
    # An invalid policy keeps its precedence: a younger one must not weaken what its owner has demanded.
    targeting = (target for target in _targeting(view, service) if target[1].section == section)
    return min((policy for policy, _ in targeting), key=_precedence, default=None)


@derived
def authorities_of(view: View, key: PolicyKey) -> CaCertificates:
    """Return the CA certificates of a policy; none for a missing policy, and for well-known certificates."""
    policy = backend_tls_policies(view).get(key)
    if policy is None:
        return CaCertificates()
    return ca_certificates(view, BACKEND_TLS_POLICY, key.namespace, policy.authorities)


def fault_of(view: View, policy: BackendTLSPolicy) -> str:
    """Return why no certificate of a backend can be verified by a policy; empty for a usable policy."""
    if policy.dropped:
        return policy.dropped
    if policy.well_known:
        known = policy.well_known == SYSTEM
        return "" if known else f"the CA certificates {policy.well_known} are unknown; must be {SYSTEM}"
    found = authorities_of(view, policy.key)
    return "" if found.pem else "; ".join(item.message for item in found.broken)


def _targeting(view: View, service: ServiceKey) -> Iterator[tuple[BackendTLSPolicy, PolicyTarget]]:
    policies = backend_tls_policies(view)
    for key in backend_policies_by_service(view).get(service, ()):
        policy = policies[key]
        for target in policy.targets:
            if policy.service_of(target) == service:
                yield policy, target


def _precedence(policy: BackendTLSPolicy) -> tuple[bool, str, str]:
    return (*age(policy.created), str(policy.key))
