"""Lint of ClientTrafficPolicies."""

from dataclasses import replace

from catalog.lint.codes import Code
from catalog.store.edits import Edits
from meshwright.mesh.gateway.gateways import Infrastructure
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import CLIENT_TRAFFIC_POLICY
from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.client_traffic import ClientRates, ClientTarget, PortSettings
from meshwright.mesh.policies.limits import RateLimits
from meshwright.mesh.policies.rate_services import CountedRequests, RateLimitService
from meshwright.mesh.problems.problem import Severity
from tests.meshes import gateway as g
from tests.unit.catalog.lint.gateway.test_gateways import MESH, OPEN, found

EDGE = g.gateway("edge", g.listener("http", 80), g.listener("tcp", 81, protocol="TCP"))
PROXIED = PortSettings(proxy_protocol=True)


def codes(*things: object) -> list[tuple[str, str, str]]:
    """Return object, field and code of the problems of ClientTrafficPolicies, sorted."""
    everything = found(g.view(*MESH, OPEN, *things), *Code)
    return sorted(
        (item.key.name, item.field, item.code)
        for item in everything
        if item.key and item.key.kind == CLIENT_TRAFFIC_POLICY
    )


def test_good_policy_has_no_problem() -> None:
    """Negative control; a policy for a listener beside one for the Gateway is no conflict."""
    own = g.client_policy("own", ClientTarget("edge", "http"), port=PROXIED)
    assert codes(EDGE, g.client_policy("whole"), own) == []


def test_missing_targets_are_errors() -> None:
    """A Gateway, a listener, and a Gateway of another controller."""
    lost = g.client_policy(
        "lost", ClientTarget("edgy"), ClientTarget("edge", "https"), ClientTarget("foreign")
    )
    foreign = g.gateway("foreign", class_name="other")
    assert codes(EDGE, g.FOREIGN_CLASS, foreign, lost) == [
        ("lost", "spec.targetRefs[0].name", Code.UNKNOWN_CLIENT_TARGET),
        ("lost", "spec.targetRefs[1].sectionName", Code.UNKNOWN_CLIENT_TARGET),
        ("lost", "spec.targetRefs[2].name", Code.UNKNOWN_CLIENT_TARGET),
    ]


def test_loser_names_the_policy_in_force() -> None:
    """An older one, or the first by name."""
    view = g.view(*MESH, OPEN, EDGE, g.client_policy("a"), g.client_policy("b"))
    (problem,) = found(view, Code.OVERRULED_CLIENT_TRAFFIC)
    assert (str(problem.key), problem.field, problem.value, problem.severity) == (
        "ClientTrafficPolicy default/b",
        "spec.targetRefs[0]",
        "default/a",
        Severity.ERROR,
    )
    assert problem.expected == (
        "ClientTrafficPolicy default/a is in force instead, because it is older or first by name. "
        "Delete one of the two, or name different listeners."
    )


def test_fields_of_requests_have_no_effect_on_connections() -> None:
    """A policy that is also for a listener with HTTP has no problem."""
    fields = ("connections", "headers", "path")
    only = replace(g.client_policy("only", ClientTarget("edge", "tcp")), fields=fields)
    assert codes(EDGE, only) == [
        ("only", "spec.headers", Code.CLIENT_FIELD_NOT_USED),
        ("only", "spec.path", Code.CLIENT_FIELD_NOT_USED),
    ]
    assert codes(EDGE, replace(g.client_policy("whole"), fields=fields)) == []


def test_gateway_of_a_cluster_whose_service_asks_for_no_header_is_a_warning() -> None:
    """On a machine anybody may send it; with the annotation of a load balancer there is no problem."""
    annotated = ("service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol", "true")
    seen = {}
    for name, pairs in (("bare", ()), ("annotated", (annotated,))):
        gateway = replace(EDGE, infrastructure=Infrastructure(annotations=pairs))
        key = g.key_of(gateway)
        view = g.view(*MESH, OPEN, gateway, g.client_policy("whole", port=PROXIED))
        assert found(view, Code.PROXY_PROTOCOL_NOT_SENT) == []
        view.apply(Edits(objects={key: SourcedObject(key, gateway, InCluster("east", "1", 1))}))
        seen[name] = [item.field for item in found(view, Code.PROXY_PROTOCOL_NOT_SENT)]
    assert seen == {"bare": ["spec.targetRefs[0].name"], "annotated": []}


def test_rate_limit_service_behind_a_sidecar_is_named() -> None:
    """Proxies call it in plain text."""
    asked = RateLimitService(HostPort("v1.default.svc.cluster.local", 80), "edge")
    rates = ClientRates(RateLimits(counted_requests=CountedRequests(asked, ())))
    assert codes(EDGE, g.client_policy("asking", rates=rates)) == [
        ("asking", "spec.rateLimit.global.http.rateLimitService.host", Code.PLAIN_TEXT_SERVER)
    ]
