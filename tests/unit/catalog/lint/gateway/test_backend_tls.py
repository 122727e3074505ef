"""Lint of BackendTLSPolicies: targets, conflicts, CA certificates, and policies without effect."""

from dataclasses import replace

import pytest

from catalog.lint.codes import Code
from meshwright.mesh.gateway.backend_tls import PolicyTarget
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import BACKEND_TLS_POLICY, DEPLOYMENT
from meshwright.mesh.problems.problem import Problem, Severity
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.catalog.lint.gateway.test_gateways import MESH, OPEN, found

WEB = a.service("web", a.port(443, name="https"), address="10.1.0.3")
BARE = replace(a.workload("web", "10.0.0.3"), uuid=None)
ROUTE = g.http_route("web", Rule(backends=(g.to("web", 443),)), parents=(g.at("edge"),))
OLD = "2026-01-01T00:00:00Z"


def problems(*things: object, route: bool = True, workload: object = BARE) -> list[Problem]:
    """Return the problems of policies in a mesh with a gateway and a route to Service `web`."""
    routes = (ROUTE,) if route else ()
    everything = found(g.view(*MESH, OPEN, g.gateway("edge"), WEB, workload, *routes, *things), *Code)
    return [item for item in everything if item.key is not None and item.key.kind == BACKEND_TLS_POLICY]


def only(*things: object, route: bool = True, workload: object = BARE) -> tuple[str, Severity, str, str]:
    """Return code, severity, field and text of the only problem."""
    (problem,) = problems(*things, route=route, workload=workload)
    return problem.code, problem.severity, problem.field, problem.expected


def test_good_policies_have_no_problem() -> None:
    """Negative control; one beside Gateways of another controller alone is not judged here."""
    assert problems(g.backend_policy(), g.ca_bundle()) == []
    assert problems(g.backend_policy(well_known="System")) == []
    foreign = g.view(
        g.FOREIGN_CLASS, g.gateway("other", class_name="other"), g.backend_policy("tls", "missing")
    )
    assert found(foreign, Code.BACKEND_TLS_TARGET, Code.BACKEND_TLS_UNUSED) == []


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (
            g.backend_policy("tls", "web", "webb"),
            "Service default/webb does not exist (did you mean web?), so",
        ),
        (
            g.backend_policy("tls", "web", "web/http"),
            "Service default/web does not have a port named http, so",
        ),
        (
            replace(
                g.backend_policy(), targets=(g.backend_policy().targets[0], PolicyTarget(DEPLOYMENT, "web"))
            ),
            "Deployment.apps web is not a Service, so",
        ),
    ],
    ids=["Service", "port", "kind"],
)
def test_missing_target_is_an_error(policy: object, text: str) -> None:
    """The author expects TLS there."""
    code, severity, field, expected = only(policy, g.ca_bundle())
    assert (code, severity, field) == (Code.BACKEND_TLS_TARGET, Severity.ERROR, "spec.targetRefs[1]")
    assert expected.startswith(text)


def test_loser_of_a_conflict_is_told_the_winner() -> None:
    """The winner has no problem."""
    code, severity, field, expected = only(
        g.backend_policy("old", created=OLD), g.backend_policy("new"), g.ca_bundle()
    )
    assert (code, severity, field) == (Code.BACKEND_TLS_CONFLICT, Severity.ERROR, "spec.targetRefs[0]")
    assert expected == (
        "BackendTLSPolicy default/old decides about Service default/web, because it is older (Conflicted), "
        "so this policy is out of force there. Delete one of the policies, or give each a sectionName of its "
        "own."
    )


def test_missing_certificates_are_an_error_that_says_what_happens() -> None:
    """A similar ConfigMap is suggested; with other certificates left the problem is a warning."""
    other = g.ca_bundle("ca-1")
    text = (
        "ConfigMap default/ca does not exist, has no entry ca.crt, or cannot be read (did you mean "
        "ca-1?). Without any CA certificate, requests of Gateways to the targets fail with 500. Name a "
        "ConfigMap with CA certificates in ca.crt."
    )
    field = "spec.validation.caCertificateRefs"
    assert only(g.backend_policy(), other) == (Code.BACKEND_TLS_AUTHORITY, Severity.ERROR, field, text)
    assert only(g.backend_policy(authorities=("ca", "ca-1")), other)[1] is Severity.WARNING
    code, severity, place, _ = only(g.backend_policy(well_known="example.com/own"))
    assert (code, severity) == (Code.BACKEND_TLS_AUTHORITY, Severity.ERROR)
    assert place == "spec.validation.wellKnownCACertificates"


def test_policy_that_no_gateway_uses_is_a_warning() -> None:
    """Callers in the mesh do not use it either."""
    code, severity, field, expected = only(g.backend_policy(), g.ca_bundle(), route=False)
    assert (code, severity, field) == (Code.BACKEND_TLS_UNUSED, Severity.WARNING, "spec.targetRefs")
    assert "callers in the mesh ignore it" in expected


def test_target_with_sidecars_is_a_warning() -> None:
    """The TLS of the mesh ends in the sidecar, which speaks plain text with the application."""
    sidecar = a.workload("web", "10.0.0.3")
    code, severity, field, expected = only(g.backend_policy(), g.ca_bundle(), workload=sidecar)
    assert (code, severity, field) == (Code.BACKEND_TLS_SIDECAR, Severity.WARNING, "spec.targetRefs[0]")
    assert expected.startswith("Endpoints behind port 443 have a sidecar.")


def test_options_have_no_effect() -> None:
    """They are other controllers'."""
    policy = replace(g.backend_policy(), unused=("spec.options",))
    code, severity, field, _ = only(policy, g.ca_bundle())
    assert (code, severity, field) == (Code.GATEWAY_FIELD_NOT_USED, Severity.WARNING, "spec.options")
