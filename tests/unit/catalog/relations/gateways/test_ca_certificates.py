"""CA certificates that gateways and policies name: which are used, and what is said of the others."""

import pytest

from catalog.relations.gateways.ca_certificates import BrokenCa, CaCertificates, CaReason, ca_certificates
from meshwright.mesh.gateway.gateways import ObjectReference
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.kinds import CONFIG_MAP, GATEWAY, SECRET
from meshwright.mesh.names import Namespace
from tests.meshes import gateway as g
from tests.meshes import values as a

HOME = Namespace("default")
CA, OTHER = ObjectReference(CONFIG_MAP, "ca"), ObjectReference(CONFIG_MAP, "other")
FAR = ObjectReference(CONFIG_MAP, "ca", Namespace("certs"))
REFUSED = "Gateways of default may refer to ConfigMap certs/ca only with a ReferenceGrant in certs"


def found(references: tuple[ObjectReference, ...], *things: object) -> CaCertificates:
    """Return the CA certificates for a gateway of the namespace `default`."""
    return ca_certificates(g.view(*things), GATEWAY, HOME, references)


def test_certificates_of_all_references_are_one_text() -> None:
    """A reference that is written twice counts once."""
    assert found((CA, OTHER, CA), g.ca_bundle(), g.ca_bundle("other")) == CaCertificates("[ca][other]")


@pytest.mark.parametrize(
    ("reference", "things", "expected"),
    [
        (
            ObjectReference(SECRET, "ca"),
            (),
            BrokenCa(CaReason.KIND, "Secret default/ca is not a ConfigMap"),
        ),
        (
            CA,
            (),
            BrokenCa(
                CaReason.UNUSABLE,
                "ConfigMap default/ca does not exist, has no entry ca.crt, or cannot be read",
                a.policy_key("ca"),
            ),
        ),
        (
            CA,
            (g.ca_bundle(fault="data.ca.crt is empty"),),
            BrokenCa(
                CaReason.UNUSABLE,
                "the CA certificates in ConfigMap default/ca cannot be used: data.ca.crt is empty",
            ),
        ),
        (
            FAR,
            (g.ca_bundle(namespace="certs"),),
            BrokenCa(CaReason.NOT_PERMITTED, REFUSED, a.policy_key("ca", "certs")),
        ),
        (FAR, (), BrokenCa(CaReason.NOT_PERMITTED, REFUSED, a.policy_key("ca", "certs"))),
    ],
    ids=["kind", "missing", "empty", "no grant", "no grant and missing"],
)
def test_broken_reference_says_why(
    reference: ObjectReference, things: tuple[object, ...], expected: BrokenCa
) -> None:
    """The other references stay in force."""
    result = found((reference, OTHER), g.ca_bundle("other"), *things)
    assert result == CaCertificates("[other]", (expected,))
    assert [item.config_map for item in result.broken] == [expected.config_map]


def test_reference_to_another_namespace_needs_a_grant() -> None:
    """The grant is for ConfigMaps, and for the kind of the naming object."""
    sources, targets = (GrantedFrom(GATEWAY, HOME),), (GrantedTo(CONFIG_MAP, "ca"),)
    grant = ReferenceGrant(a.policy_key("grant", "certs"), sources, targets)
    assert found((FAR,), g.ca_bundle(namespace="certs"), grant) == CaCertificates("[ca]")
