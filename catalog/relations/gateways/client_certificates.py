"""The client certificate of a gateway, which backends with TLS get."""

from catalog.relations.gateways.certificates import resolved
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.verdicts import BrokenCertificate, CertificateReason
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.kinds import GATEWAY
from meshwright.mesh.policies.smi import PolicyKey


@derived
def client_certificate(view: View, key: PolicyKey) -> PolicyKey | BrokenCertificate | None:
    """Return the name of the usable Secret with a gateway's client certificate, or why it is out of force.

    None for a gateway without a client certificate, and for one that is not served here.
    """
    gateway = served_gateway(view, key)
    reference = None if gateway is None else gateway.tls.client_certificate
    if reference is None:
        return None
    invalid = CertificateReason.INVALID_CLIENT_CERTIFICATE_REF
    return resolved(view, GATEWAY, key.namespace, reference, invalid)
