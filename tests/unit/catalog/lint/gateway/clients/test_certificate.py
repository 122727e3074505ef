"""Lint of client certificates that gateways show to backends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import catalog.lint.problems
from catalog.lint.codes import Code
from meshwright.mesh.gateway.gateways import Gateway
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.gateway.secrets import EdgeCertificate
from tests.meshes import gateway as g
from tests.meshes import values as a

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FIELD = "spec.tls.backend.clientCertificateRef"
OWN = g.with_client_certificate(g.gateway("edge"))
CODES = (Code.NO_CERTIFICATE, Code.CERTIFICATE_OUT_OF_TIME, Code.TLS_WITHOUT_EFFECT)
ROUTE = g.http_route("shop", Rule(backends=(g.to("web"),)), parents=(g.at("edge"),))
USED = (ROUTE, a.service("web"), g.backend_policy(), g.ca_bundle())


def found(gateway: Gateway, *others: object, now: datetime | None = None) -> list[tuple[str, str, str]]:
    """Return code, field and text of the problems of a gateway's client certificate."""
    return [
        (problem.code, problem.field, problem.expected)
        for problem in catalog.lint.problems.problems(g.view(g.CLASS, gateway, *others), now)
        if problem.code in CODES
    ]


def test_missing_client_certificate_is_named_with_a_similar_secret() -> None:
    """The reference may be misspelt."""
    text = (
        "The client certificate cannot be shown to backends (InvalidClientCertificateRef): Secret "
        "default/client does not exist, or cannot be read (did you mean clients?). Correct the reference, "
        "the Secret or the ReferenceGrant."
    )
    assert found(OWN, g.tls_secret("clients")) == [(Code.NO_CERTIFICATE, FIELD, text)]
    assert found(OWN, g.tls_secret("client"), *USED) == []
    assert found(replace(OWN, class_name="other"), g.FOREIGN_CLASS) == []


def test_expired_client_certificate_is_a_problem_too() -> None:
    """Backends refuse it, so their requests fail with 503."""
    certificate = EdgeCertificate((), BEGIN, BEGIN + timedelta(days=80))
    secret = replace(g.tls_secret("client"), certificate=certificate)
    assert found(OWN, secret, *USED, now=BEGIN) == []
    text = (
        "The certificate expired at 2026-03-22T00:00:00Z, so backends refuse it. Replace the content of "
        "Secret default/client with a valid certificate."
    )
    late = found(OWN, secret, *USED, now=BEGIN + timedelta(days=90))
    assert late == [(Code.CERTIFICATE_OUT_OF_TIME, FIELD, text)]


def test_client_certificate_without_a_backend_has_no_effect() -> None:
    """Without a BackendTLSPolicy a gateway connects in plain text, or with the certificate of the mesh."""
    text = (
        "Backends do not get this certificate, because a BackendTLSPolicy for a backend of the gateway's "
        "routes is missing. Create a BackendTLSPolicy for the Service, or delete the reference."
    )
    assert found(OWN, g.tls_secret("client"), *USED[:2]) == [(Code.TLS_WITHOUT_EFFECT, FIELD, text)]
