"""TLS of gateways to backends, by BackendTLSPolicies.

A policy is for endpoints without a sidecar. Gateways reach the others with the mesh's mutual TLS, which
proves the identity of the endpoint.
"""

from collections.abc import Iterator

from catalog.policy.objects.routing import Place
from catalog.policy.outbound import is_plain
from catalog.policy.values.destinations import BackendTls
from catalog.relations.backend_tls.decision import authorities_of, deciding_policy, fault_of
from catalog.store.gateway import backend_tls_policies, ca_bundles
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.backend_tls import AltName, AltNameType, BackendTLSPolicy
from meshwright.mesh.kinds import BACKEND_TLS_POLICY, CONFIG_MAP
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


def policy_at_edge(view: View, place: Place) -> BackendTLSPolicy | None:
    """Return the policy for calls of gateways to a place; None if no policy is in force there."""
    policy = deciding_policy(view, *place)
    return policy if policy is not None and is_plain(view, place) else None


def is_broken(view: View, policy: BackendTLSPolicy) -> bool:
    """Return whether requests fail, because a policy cannot verify any certificate."""
    return bool(fault_of(view, policy))


def objects_of_backend_tls(view: View, service: ServiceKey, target_port: str) -> Iterator[ObjectKey]:
    """Yield the policies for a target port of a Service, and their ConfigMaps."""
    for port in view.services[service].ports_leading_to(target_port):
        policy = deciding_policy(view, service, port)
        if policy is not None:
            yield ObjectKey.from_name(BACKEND_TLS_POLICY, policy.key)
            named = (PolicyKey(policy.key.namespace, item.name) for item in policy.authorities)
            yield from (ObjectKey.from_name(CONFIG_MAP, key) for key in named if key in ca_bundles(view))


@derived
def backend_tls(view: View, key: PolicyKey) -> BackendTls | None:
    """Return the TLS that a usable policy demands; None for another policy, to which no request goes."""
    policy = backend_tls_policies(view).get(key)
    if policy is None or is_broken(view, policy):
        return None
    # With names of its own, a policy uses the host name for the selection of a certificate alone.
    names = policy.names or (AltName(AltNameType.HOSTNAME, policy.hostname),)
    roots = None if policy.well_known else authorities_of(view, key).pem
    return BackendTls(key, policy.hostname, names, roots)
