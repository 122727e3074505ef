"""Validation of the clients of a gateway: the CA certificates of a port, and the reasons against the others.

The validation is of the Gateway, also for listeners of its ListenerSets, and so are the ReferenceGrants that
its references need.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from catalog.relations.gateways.ca_certificates import CaReason, ca_certificates
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.verdicts import ClientAuthorities
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.gateways import ClientValidation
from meshwright.mesh.kinds import GATEWAY
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey

REASONS: Final[Mapping[CaReason, str]] = MappingProxyType(
    {
        CaReason.KIND: "InvalidCACertificateKind",
        CaReason.UNUSABLE: "InvalidCACertificateRef",
        CaReason.NOT_PERMITTED: "RefNotPermitted",
    }
)
"""Reasons of a listener's condition `ResolvedRefs` for CA certificates out of force."""


@derived
def client_authorities(view: View, gateway: PolicyKey, port: Port) -> ClientAuthorities | None:
    """Return the CA certificates by which the listeners with TLS at a port validate their clients.

    None if clients need no certificate there.
    """
    found = served_gateway(view, gateway)
    validation = None if found is None else found.tls.frontend.at(port)
    return None if validation is None else authorities_of(view, gateway.namespace, validation)


def authorities_of(view: View, namespace: Namespace, validation: ClientValidation) -> ClientAuthorities:
    """Return the CA certificates of a validation in a Gateway of a namespace."""
    # One PEM text for all references, because a proxy has one store of CA certificates for a port.
    found = ca_certificates(view, GATEWAY, namespace, validation.authorities)
    return ClientAuthorities(validation.mode, found.pem, found.broken)
