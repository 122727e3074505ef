"""The client certificate of a gateway: which Secret is shown to backends, and what is said of the others."""

import pytest

from catalog.relations.gateways.client_certificates import client_certificate
from catalog.relations.gateways.verdicts import BrokenCertificate, CertificateReason
from meshwright.mesh.gateway.gateways import Gateway
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.kinds import GATEWAY, SECRET, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey
from tests.meshes import gateway as g
from tests.meshes import values as a

EDGE = g.gateway("edge")
OWN = g.with_client_certificate(EDGE)
FAR = g.with_client_certificate(EDGE, namespace="certs")
GRANT = ReferenceGrant(
    a.policy_key("grant", "certs"), (GrantedFrom(GATEWAY, Namespace("default")),), (GrantedTo(SECRET),)
)
INVALID, NOT_PERMITTED = (
    CertificateReason.INVALID_CLIENT_CERTIFICATE_REF,
    CertificateReason.REF_NOT_PERMITTED,
)


def found(gateway: Gateway, *others: object) -> PolicyKey | BrokenCertificate | None:
    """Return the verdict about the client certificate of a gateway."""
    return client_certificate(g.view(g.CLASS, gateway, *others), gateway.key)


def test_gateway_shows_its_secret() -> None:
    """One of the own namespace, and with a grant one of another."""
    assert found(OWN, g.tls_secret("client")) == a.policy_key("client")
    assert found(FAR, GRANT, g.tls_secret("client", namespace="certs")) == a.policy_key("client", "certs")


def test_gateway_without_a_reference_or_of_another_controller_shows_none() -> None:
    """The verdict is about gateways of Meshwright alone."""
    assert found(EDGE) is None
    foreign = g.with_client_certificate(g.gateway("edge", class_name="other"))
    assert found(foreign, g.FOREIGN_CLASS, g.tls_secret("client")) is None


@pytest.mark.parametrize(
    ("gateway", "expected"),
    [
        (OWN, BrokenCertificate(INVALID, "Secret default/client does not exist, or cannot be read")),
        (
            g.with_client_certificate(EDGE, kind=Kind("Secret", "wrong.example")),
            BrokenCertificate(INVALID, "Secret.wrong.example default/client is not a Secret"),
        ),
        (
            g.with_client_certificate(EDGE, kind=Kind("WrongKind", "")),
            BrokenCertificate(INVALID, "WrongKind default/client is not a Secret"),
        ),
        (
            g.with_client_certificate(EDGE, "bad"),
            BrokenCertificate(
                INVALID, "the certificate in Secret default/bad cannot be used: it lacks tls.crt"
            ),
        ),
        (
            FAR,
            BrokenCertificate(
                NOT_PERMITTED,
                "Gateways of default may refer to Secret certs/client only with a ReferenceGrant in certs",
            ),
        ),
    ],
    ids=["missing", "group", "kind", "malformed", "no grant"],
)
def test_bad_reference_has_its_reason(gateway: Gateway, expected: BrokenCertificate) -> None:
    """GatewayInvalidTLSBackendConfiguration: the five references of the suite."""
    others = (g.tls_secret("client", namespace="certs"), g.tls_secret("bad", fault="it lacks tls.crt"))
    assert found(gateway, *others) == expected
