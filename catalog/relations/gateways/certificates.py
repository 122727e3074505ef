"""Certificates of listeners: usable Secrets, and the reasons against the others.

A Secret of another namespace than that of the Gateway or ListenerSet needs a ReferenceGrant there. Without
one the verdict is the same whether or not the Secret exists, so that nobody can search for Secrets. For
example, a Gateway of namespace `web` needs a grant in `certs` for Secret `certs/shop`. Its ListenerSets need
grants of their own.
"""

from catalog.relations.gateways.grants import is_granted
from catalog.relations.gateways.verdicts import BrokenCertificate, CertificateReason
from catalog.store.gateway import tls_secrets
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Listener, ObjectReference
from meshwright.mesh.kinds import SECRET, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey

Certificates = tuple[tuple[PolicyKey, ...], tuple[BrokenCertificate, ...]]
"""Names of usable Secrets in the order of the listener, and the references out of force."""


def certificates_of(view: View, owner: Kind, namespace: Namespace, listener: Listener) -> Certificates:
    """Return the certificates of a listener with TLS, of a Gateway or ListenerSet in a namespace."""
    references = () if listener.tls is None else listener.tls.certificates
    if not references:
        message = "the listener must name a Secret in tls.certificateRefs"
        return (), (BrokenCertificate(CertificateReason.INVALID_CERTIFICATE_REF, message),)
    invalid = CertificateReason.INVALID_CERTIFICATE_REF
    found = [resolved(view, owner, namespace, reference, invalid) for reference in references]
    good = (item for item in found if isinstance(item, PolicyKey))
    broken = tuple(item for item in found if isinstance(item, BrokenCertificate))
    return tuple(dict.fromkeys(good)), broken


def resolved(
    view: View, owner: Kind, own: Namespace, reference: ObjectReference, invalid: CertificateReason
) -> PolicyKey | BrokenCertificate:
    """Return the name of a usable Secret, or why the reference is out of force.

    `owner` is the kind of the referring object, in the namespace `own`. `invalid` is the reason of a Secret
    that is missing or unusable.
    """
    namespace = own if reference.namespace is None else reference.namespace
    key = PolicyKey(namespace, reference.name)
    if reference.kind != SECRET:
        return BrokenCertificate(invalid, f"{reference.kind.full} {key} is not a Secret")
    if not is_granted(view, owner, own, ObjectKey.from_name(SECRET, key)):
        message = (
            f"{owner.name}s of {own} may refer to Secret {key} only with a ReferenceGrant in {namespace}"
        )
        return BrokenCertificate(CertificateReason.REF_NOT_PERMITTED, message, key)
    secret = tls_secrets(view).get(key)
    if secret is None:
        return BrokenCertificate(invalid, f"Secret {key} does not exist, or cannot be read", key)
    if secret.fault:
        message = f"the certificate in Secret {key} cannot be used: {secret.fault}"
        return BrokenCertificate(invalid, message)
    return key
