"""Lint of the validation of a gateway's clients."""

import pytest

import catalog.lint.problems
from catalog.lint.codes import Code
from meshwright.mesh.gateway.gateways import Gateway, ValidationMode
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.kinds import CONFIG_MAP, HTTP_ROUTE
from meshwright.mesh.names import Namespace
from tests.meshes import gateway as g
from tests.meshes import values as a

EDGE = g.gateway("edge", g.listener(), g.https())
CODES = (Code.NO_CERTIFICATE, Code.TLS_WITHOUT_EFFECT, Code.INSECURE_CLIENTS)
DEFAULT, FIRST = "spec.tls.frontend.default.validation", "spec.tls.frontend.perPort[0]"
INSECURE = ValidationMode.INSECURE_FALLBACK


def found(gateway: Gateway, *others: object) -> list[tuple[str, str, str, str]]:
    """Return code, field, value and text of the problems of a gateway's validations."""
    view = g.view(g.CLASS, gateway, g.tls_secret(), *others)
    return [
        (problem.code, problem.field, problem.value, problem.expected)
        for problem in catalog.lint.problems.problems(view)
        if problem.code in CODES
    ]


def test_missing_ca_certificates_are_named_with_a_similar_config_map() -> None:
    """The reference may be misspelt."""
    text = (
        "CA certificates for clients cannot be used (InvalidCACertificateRef): ConfigMap default/clients "
        "does not exist, has no entry ca.crt, or cannot be read (did you mean client?). Correct the "
        "reference, the ConfigMap or the ReferenceGrant."
    )
    gateway = g.with_validation(EDGE, g.validation("clients"))
    expected = [(Code.NO_CERTIFICATE, f"{DEFAULT}.caCertificateRefs", "", text)]
    assert found(gateway, g.ca_bundle("client")) == expected
    assert found(gateway, g.ca_bundle("clients")) == []


def test_grant_that_nearly_permits_ca_certificates_is_named() -> None:
    """The grant is for another kind of objects."""
    sources = (GrantedFrom(HTTP_ROUTE, Namespace("default")),)
    grant = ReferenceGrant(a.policy_key("grant", "certs"), sources, (GrantedTo(CONFIG_MAP),))
    (problem,) = found(g.with_validation(EDGE, g.validation(namespace="certs")), grant)
    assert "(RefNotPermitted)" in problem[3]
    assert "ReferenceGrant certs/grant is for HTTPRoutes of namespace default, and not for" in problem[3]


@pytest.mark.parametrize(
    ("gateway", "field", "value", "text"),
    [
        (
            g.with_validation(g.gateway("edge"), g.validation()),
            DEFAULT,
            "",
            "The validation is without clients, because the listeners do not end TLS. ",
        ),
        (
            g.with_validation(EDGE, g.validation(), at_443=None),
            DEFAULT,
            "",
            "The validation is without clients, because each port with TLS has its own. ",
        ),
        (
            g.with_validation(EDGE, None, at_80=g.validation()),
            f"{FIRST}.port",
            "80",
            "The entry is without clients, because listeners at port 80 do not end TLS. ",
        ),
    ],
    ids=["no TLS", "own validations", "port without TLS"],
)
def test_validation_without_clients_has_no_effect(
    gateway: Gateway, field: str, value: str, text: str
) -> None:
    """Somebody may believe that the clients of the port are validated."""
    advice = "Delete the validation, or correct the port."
    assert found(gateway, g.ca_bundle()) == [(Code.TLS_WITHOUT_EFFECT, field, value, f"{text}{advice}")]


def test_entry_that_repeats_the_default_has_no_effect() -> None:
    """The default is for another port."""
    edge = g.gateway("edge", g.https(), g.reference(g.https("other"), CONFIG_MAP, "x"))
    gateway = g.with_validation(edge, g.validation(), at_443=g.validation())
    text = "The entry repeats the default, so it changes nothing. Delete the entry."
    repeated = (Code.TLS_WITHOUT_EFFECT, f"{FIRST}.port", "443", text)
    assert repeated in found(gateway, g.ca_bundle())


def test_validation_of_a_sets_listener_has_an_effect() -> None:
    """The listener of a ListenerSet ends TLS at a port that the gateway does not have."""
    gateway = g.with_validation(g.open_gateway("edge"), g.validation())
    assert found(gateway, g.ca_bundle(), g.listener_set("team", g.https())) == []


def test_insecure_fallback_is_a_warning() -> None:
    """Each validation with it, also if it is meant."""
    gateway = g.with_validation(EDGE, g.validation(mode=INSECURE))
    text = (
        "Every client is admitted, with any certificate or without one. The mode for other uses than tests "
        "is AllowValidOnly."
    )
    expected = [(Code.INSECURE_CLIENTS, f"{DEFAULT}.mode", "AllowInsecureFallback", text)]
    assert found(gateway, g.ca_bundle()) == expected
