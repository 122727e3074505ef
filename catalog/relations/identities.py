"""Identities that need service certificates, with their DNS names."""

from collections.abc import Mapping

from catalog.relations.backends.workloads import services_of
from catalog.store.inventory import by_identity
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity


def service_identities(view: View) -> Mapping[ServiceIdentity, tuple[str, ...]]:
    """Return each identity with a sidecar, and the DNS names of its services, sorted."""
    return {
        identity: dns_names(view, identity)
        for identity in sorted(by_identity(view))
        if any(workload.uuid is not None for workload in by_identity(view).lookup(identity))
    }


@derived
def dns_names(view: View, identity: ServiceIdentity) -> tuple[str, ...]:
    """Return the full DNS names of the services of an identity's workloads, sorted.

    For example: `("cart.shop.svc.cluster.local",)`.
    """
    services = {
        service
        for workload in by_identity(view).lookup(identity)
        if workload.uuid is not None
        for service in services_of(view, workload.key)
    }
    return tuple(sorted(service.fqdn(view.settings.cluster_domain) for service in services))
