"""Explanations of requests to backends with a BackendTLSPolicy."""

from dataclasses import replace

from catalog.explain import EdgeExplanation
from catalog.oracle.decide import Answer
from meshwright.mesh.gateway.backend_tls import AltName, AltNameType
from meshwright.mesh.gateway.rules import Rule
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.catalog.explain.test_edge import TWO, explained, texts

HTTPS = replace(a.port(443, name="https"), protocol=a.TCP, secure=True)
WEB = a.service("web", HTTPS, address="10.1.0.4")
BARE = replace(a.workload("web", "10.0.0.4"), uuid=None)
ROUTE = g.http_route("web", Rule(backends=(g.to("web", 443),)), parents=(g.at("edge"),))


def asked(*things: object, workload: object = BARE) -> EdgeExplanation:
    """Explain a request to Service `web` behind the gateway."""
    return explained(TWO, WEB, workload, ROUTE, *things)


def test_policy_is_named_with_what_it_demands() -> None:
    """The server name, the names in the certificate, and the CA certificates."""
    result = asked(g.backend_policy(), g.ca_bundle())
    assert result.headline == "allowed"
    assert (
        "BackendTLSPolicy default/tls: the gateway connects with TLS and the server name web.example; the "
        "certificate must be for web.example, and signed by a CA of ConfigMap default/ca; "
        "otherwise the gateway answers 503."
    ) in texts(result)
    names = (AltName(AltNameType.HOSTNAME, "a.example"), AltName(AltNameType.URI, "spiffe://b/c"))
    more = texts(asked(g.backend_policy(well_known="System", names=names)))
    assert any("for a.example or spiffe://b/c, and signed by a CA of the system;" in text for text in more)


def test_policy_without_certificates_is_the_reason_of_500() -> None:
    """The answer is the gateway's own."""
    result = asked(g.backend_policy())
    assert (result.answer, result.headline) == (Answer.REFUSED, "refused: 500")
    assert (
        "spec.rules[0].backendRefs[0] fails: BackendTLSPolicy default/tls cannot be used: "
        "ConfigMap default/ca does not exist, has no entry ca.crt, or cannot be read."
    ) in texts(result)


def test_declared_https_without_policy_is_refused() -> None:
    """The gateway would send plain text to a port that speaks TLS."""
    assert asked().headline == "refused: 500"


def test_policy_has_no_effect_on_a_sidecar() -> None:
    """Neither has a broken one."""
    result = asked(g.backend_policy(), workload=a.workload("web", "10.0.0.4"))
    assert result.headline == "allowed"
    assert any(text.startswith("BackendTLSPolicy default/tls is without effect: ") for text in texts(result))
