"""Certificates of listeners: which are shown, and what is said of the others."""

import pytest

from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.verdicts import (
    BrokenCertificate,
    CertificateReason,
    ListenerReason,
    ListenerVerdict,
)
from meshwright.mesh.gateway.gateways import Listener
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.kinds import GATEWAY, GRPC_ROUTE, HTTP_ROUTE, SECRET, TLS_ROUTE, Kind
from meshwright.mesh.names import Namespace
from tests.meshes import gateway as g
from tests.meshes import values as a

CERT, OTHER = a.policy_key("cert"), a.policy_key("other")
INVALID, NOT_PERMITTED = CertificateReason.INVALID_CERTIFICATE_REF, CertificateReason.REF_NOT_PERMITTED


def verdict(listener: Listener, *others: object) -> ListenerVerdict:
    """Return the verdict about the only listener of a gateway in the namespace `default`."""
    gateway = g.gateway("edge", listener)
    (found,) = listener_verdicts(g.view(g.CLASS, gateway, *others), gateway.key)
    return found


def grant(
    name: str | None = None, *, source: Kind = GATEWAY, target: Kind = SECRET, namespace: str = "default"
) -> ReferenceGrant:
    """Make a grant in the namespace `certs`."""
    sources = (GrantedFrom(source, Namespace(namespace)),)
    return ReferenceGrant(a.policy_key("grant", "certs"), sources, (GrantedTo(target, name),))


@pytest.mark.parametrize(
    ("protocol", "kinds"), [("HTTPS", (HTTP_ROUTE, GRPC_ROUTE)), ("TLS", (TLS_ROUTE,))], ids=["HTTPS", "TLS"]
)
def test_listener_that_ends_tls_shows_its_secrets(protocol: str, kinds: tuple[Kind, ...]) -> None:
    """The whole verdict of a good listener, with the Secrets in its order."""
    listener = g.https("https", "", "other", "cert", protocol=protocol)
    assert verdict(listener, g.tls_secret(), g.tls_secret("other")) == ListenerVerdict(
        listener,
        ListenerReason.ACCEPTED,
        "the listener is in force at port 443",
        kinds,
        certificates=(OTHER, CERT),
    )


def test_listener_without_any_certificate_is_accepted_and_out_of_force() -> None:
    """GatewayInvalidTLSConfiguration: ResolvedRefs and Programmed are False, and Accepted stays True."""
    missing = BrokenCertificate(INVALID, "Secret default/cert does not exist, or cannot be read")
    found = verdict(g.https())
    assert (found.accepted, found.in_force, found.broken) == (True, False, (missing,))
    assert found.message == (
        "the listener is out of force, because it lacks a certificate: "
        "Secret default/cert does not exist, or cannot be read"
    )


def test_other_certificates_of_a_listener_serve() -> None:
    """One bad reference of two is said, and costs nothing else."""
    found = verdict(g.https("https", "", "cert", "other"), g.tls_secret(), g.tls_secret("other", fault="bad"))
    broken = BrokenCertificate(INVALID, "the certificate in Secret default/other cannot be used: bad")
    assert (found.in_force, found.certificates, found.broken) == (True, (CERT,), (broken,))


def test_reference_to_another_kind_is_invalid() -> None:
    """A ConfigMap is no certificate."""
    listener = g.reference(g.https(), Kind("ConfigMap", ""), "cert")
    (broken,) = verdict(listener, g.tls_secret()).broken
    assert broken == BrokenCertificate(INVALID, "ConfigMap default/cert is not a Secret")


@pytest.mark.parametrize("exists", [True, False], ids=["exists", "missing"])
@pytest.mark.parametrize(
    "wrong",
    [
        None,
        grant("other"),
        grant(source=HTTP_ROUTE),
        grant(target=Kind("ConfigMap", "")),
        grant(namespace="web"),
    ],
    ids=["none", "name", "source", "target", "namespace"],
)
def test_secret_of_another_namespace_needs_a_grant(wrong: ReferenceGrant | None, exists: bool) -> None:
    """GatewaySecretMissingReferenceGrant, GatewaySecretInvalidReferenceGrant: nobody learns what exists."""
    others = (*((wrong,) if wrong else ()), *((g.tls_secret(namespace="certs"),) if exists else ()))
    (broken,) = verdict(g.https(namespace="certs"), *others).broken
    message = "Gateways of default may refer to Secret certs/cert only with a ReferenceGrant in certs"
    assert broken == BrokenCertificate(NOT_PERMITTED, message)


@pytest.mark.parametrize("name", [None, "cert"], ids=["all", "specific"])
def test_granted_secret_is_shown(name: str | None) -> None:
    """GatewaySecretReferenceGrantAllInNamespace, GatewaySecretReferenceGrantSpecific."""
    found = verdict(g.https(namespace="certs"), grant(name), g.tls_secret(namespace="certs"))
    assert (found.in_force, found.certificates) == (True, (a.policy_key("cert", "certs"),))
