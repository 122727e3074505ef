"""Validation of the clients of a gateway: CA certificates of each port, and listeners without any."""

import pytest

from catalog.relations.gateways.ca_certificates import BrokenCa, CaReason
from catalog.relations.gateways.client_validation import client_authorities
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.verdicts import ClientAuthorities, ListenerReason, ListenerVerdict
from meshwright.mesh.gateway.gateways import ClientValidation, Gateway, ValidationMode
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.kinds import CONFIG_MAP, GATEWAY, GRPC_ROUTE, HTTP_ROUTE, SERVICE
from meshwright.mesh.names import Namespace, Port
from tests.meshes import gateway as g
from tests.meshes import values as a

VALID, INSECURE = ValidationMode.VALID_ONLY, ValidationMode.INSECURE_FALLBACK
EDGE = g.gateway("edge", g.listener(), g.https())
MISSING = BrokenCa(
    CaReason.UNUSABLE, "ConfigMap default/ca does not exist, has no entry ca.crt, or cannot be read"
)


def verdicts(gateway: Gateway, *others: object) -> tuple[ListenerVerdict, ...]:
    """Return the verdicts about the listeners of a gateway of our class with a certificate."""
    return listener_verdicts(g.view(g.CLASS, gateway, g.tls_secret(), *others), gateway.key)


def at(gateway: Gateway, port: int, *others: object) -> ClientAuthorities | None:
    """Return the CA certificates for clients of a port."""
    return client_authorities(g.view(g.CLASS, gateway, *others), gateway.key, Port(port))


def test_listener_that_ends_tls_validates_its_clients() -> None:
    """The whole verdict; a listener without TLS cannot validate anybody."""
    plain, secure = verdicts(g.with_validation(EDGE, g.validation()), g.ca_bundle())
    assert plain.clients is None
    assert secure == ListenerVerdict(
        g.https(),
        ListenerReason.ACCEPTED,
        "the listener is in force at port 443",
        (HTTP_ROUTE, GRPC_ROUTE),
        certificates=(a.policy_key("cert"),),
        clients=ClientAuthorities(VALID, "[ca]"),
    )


def test_validation_of_a_port_replaces_the_default() -> None:
    """Also an absent one."""
    gateway = g.with_validation(EDGE, g.validation(), at_8443=g.validation("b", mode=INSECURE), at_1=None)
    bundles = (g.ca_bundle(), g.ca_bundle("b"))
    assert at(gateway, 443, *bundles) == ClientAuthorities(VALID, "[ca]")
    assert at(gateway, 8443, *bundles) == ClientAuthorities(INSECURE, "[b]")
    assert at(gateway, 1, *bundles) is None


GRANT = ReferenceGrant(
    a.policy_key("grant", "certs"), (GrantedFrom(GATEWAY, Namespace("default")),), (GrantedTo(CONFIG_MAP),)
)


@pytest.mark.parametrize(
    ("validation", "expected"),
    [
        (g.validation(), MISSING),
        (
            g.validation(kind=SERVICE),
            BrokenCa(CaReason.KIND, "Service default/ca is not a ConfigMap"),
        ),
        (
            g.validation(namespace="certs"),
            BrokenCa(
                CaReason.NOT_PERMITTED,
                "Gateways of default may refer to ConfigMap certs/ca only with a ReferenceGrant in certs",
            ),
        ),
        (
            g.validation("bad", mode=INSECURE),
            BrokenCa(
                CaReason.UNUSABLE, "the CA certificates in ConfigMap default/bad cannot be used: is empty"
            ),
        ),
    ],
    ids=["missing", "kind", "no grant", "insecure fallback"],
)
def test_listener_without_a_ca_certificate_is_refused(
    validation: ClientValidation, expected: BrokenCa
) -> None:
    """GatewayInvalidFrontendClientCertificateValidation: listeners at other ports stay."""
    others = (g.ca_bundle(namespace="certs"), g.ca_bundle("bad", fault="is empty"))
    plain, secure = verdicts(g.with_validation(EDGE, validation), *others)
    assert (plain.in_force, secure.in_force, secure.reason) == (
        True,
        False,
        ListenerReason.NO_VALID_CA_CERTIFICATE,
    )
    assert secure.clients == ClientAuthorities(validation.mode, "", (expected,))
    assert secure.message == (
        f"the listener is out of force, because it cannot validate its clients: {expected.message}"
    )


def test_granted_authority_of_another_namespace_validates() -> None:
    """GatewayFrontendClientCertificateValidation, with a ReferenceGrant for Gateways."""
    gateway = g.with_validation(EDGE, g.validation(namespace="certs"))
    found = at(gateway, 443, g.ca_bundle(namespace="certs"), GRANT)
    assert found == ClientAuthorities(VALID, "[ca]")


def test_listener_with_some_ca_certificates_validates_by_these() -> None:
    """The others can only keep clients out."""
    _, secure = verdicts(g.with_validation(EDGE, g.validation("ca", "good")), g.ca_bundle("good"))
    assert (secure.in_force, secure.clients) == (True, ClientAuthorities(VALID, "[good]", (MISSING,)))


def test_listener_of_a_set_validates_by_the_gateway() -> None:
    """The references and grants are those of the Gateway's namespace."""
    gateway = g.with_validation(g.open_gateway("edge"), g.validation())
    found = g.listener_set("team", g.https(), at="default", namespace="team")
    secret = g.tls_secret(namespace="team")
    _, secure = verdicts(gateway, found, secret, g.ca_bundle(), g.ca_bundle(namespace="team"))
    assert (secure.in_force, secure.clients) == (True, ClientAuthorities(VALID, "[ca]"))
