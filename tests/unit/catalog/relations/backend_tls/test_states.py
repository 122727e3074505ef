"""States of BackendTLSPolicies: gateways, targets, conflicts and references, in the words of the status."""

from dataclasses import replace

import pytest

from catalog.relations.backend_tls.states import (
    PolicyReason,
    PolicyState,
    ReferenceReason,
    TargetVerdict,
    policy_state,
)
from meshwright.mesh.gateway.backend_tls import PolicyTarget
from meshwright.mesh.gateway.filters import Filters, Mirror
from meshwright.mesh.gateway.gateways import ObjectReference
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import DEPLOYMENT, SECRET, SERVICE
from tests.meshes import gateway as g
from tests.meshes import values as a

WEB = a.service("web", a.port(443, name="https"), a.port(8443, name="admin"))
ROUTE = g.http_route("shop", Rule(backends=(g.to("web", 443),)), parents=(g.at("edge"),))
MESH = (g.CLASS, g.gateway("edge"), WEB, ROUTE)
OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
MISSING = "ConfigMap default/ca does not exist, has no entry ca.crt, or cannot be read"


def state(*things: object, name: str = "tls") -> PolicyState:
    """Return the state of a policy in a mesh with a gateway and a route."""
    found = policy_state(g.view(*MESH, *things), a.policy_key(name))
    assert found is not None
    return found


def verdict(*things: object, name: str = "tls") -> tuple[PolicyReason, ReferenceReason]:
    """Return the reasons of both conditions."""
    found = state(*things, name=name)
    return found.reason, found.reference_reason


def test_good_policy_is_accepted_at_its_gateways() -> None:
    """The whole state."""
    assert state(g.backend_policy(), g.ca_bundle()) == PolicyState(
        a.policy_key("tls"),
        (a.policy_key("edge"),),
        (TargetVerdict(PolicyTarget(SERVICE, "web")),),
        PolicyReason.ACCEPTED,
        "the policy is in force",
        ReferenceReason.RESOLVED,
        "all CA certificates can be used",
    )


def test_gateways_are_those_with_an_attached_route_to_a_target() -> None:
    """Copies count, foreign gateways do not, and neither do routes that a gateway refuses."""
    mirror = Rule(filters=Filters(mirrors=(Mirror(g.to("web", 443).to),)))
    things = (
        g.gateway("copies"),
        g.gateway("foreign", class_name="other"),
        g.FOREIGN_CLASS,
        g.http_route("copies", mirror, parents=(g.at("copies"),)),
        g.http_route("lost", *ROUTE.rules, parents=(g.at("foreign"), g.at("edge", "missing"))),
    )
    assert state(g.backend_policy(), g.ca_bundle(), *things).gateways == (
        a.policy_key("copies"),
        a.policy_key("edge"),
    )
    assert state(g.backend_policy("tls", "unused")).gateways == ()


@pytest.mark.parametrize(
    ("policy", "things", "expected"),
    [
        (g.backend_policy(), (), ("NoValidCACertificate", "InvalidCACertificateRef")),
        (
            g.backend_policy(),
            (g.ca_bundle(fault="is empty"),),
            ("NoValidCACertificate", "InvalidCACertificateRef"),
        ),
        (
            replace(g.backend_policy(), authorities=(ObjectReference(SECRET, "ca"),)),
            (),
            ("NoValidCACertificate", "InvalidKind"),
        ),
        (
            g.backend_policy(authorities=("ca", "b")),
            (g.ca_bundle(),),
            ("Accepted", "InvalidCACertificateRef"),
        ),
        (g.backend_policy(well_known="System"), (), ("Accepted", "ResolvedRefs")),
        (g.backend_policy(well_known="example.com/own"), (), ("Invalid", "ResolvedRefs")),
        (replace(g.backend_policy(), dropped="is broken"), (g.ca_bundle(),), ("Invalid", "ResolvedRefs")),
        (g.backend_policy("tls", "web/none"), (g.ca_bundle(),), ("TargetNotFound", "ResolvedRefs")),
        (g.backend_policy("tls", "missing"), (g.ca_bundle(),), ("TargetNotFound", "ResolvedRefs")),
    ],
)
def test_reasons_are_those_of_the_specification(
    policy: object, things: tuple[object, ...], expected: tuple[str, str]
) -> None:
    """Acceptance, and the references to CA certificates."""
    assert verdict(policy, *things) == expected


def test_message_says_what_is_wrong() -> None:
    """The reference and its fault are named."""
    found = state(g.backend_policy())
    assert (found.message, found.reference_message) == (f"requests to the targets fail: {MISSING}", MISSING)
    target = PolicyTarget(DEPLOYMENT, "web")
    other = state(replace(g.backend_policy(), targets=(target,)))
    assert other.targets == (TargetVerdict(target, "Deployment.apps web is not a Service"),)


@pytest.mark.parametrize("target", ["web", "web/https"])
def test_oldest_policy_for_a_target_decides(target: str) -> None:
    """BackendTLSPolicyConflictResolution; the winner may be broken, and names decide at one age."""
    old, young = g.backend_policy("z", target, created=OLD), g.backend_policy("a", target, created=YOUNG)
    assert verdict(old, young, g.ca_bundle(), name="z")[0] == "Accepted"
    assert verdict(old, young, g.ca_bundle(), name="a")[0] == "Conflicted"
    assert verdict(old, young, name="a")[0] == "Conflicted"
    alike = replace(young, created=OLD)
    assert verdict(old, alike, g.ca_bundle(), name="z")[0] == "Conflicted"
    expected = "default/z decides about port https of Service default/web, because it is older"
    if target == "web/https":
        assert state(old, young, name="a").message == expected


def test_policy_for_a_port_is_beside_one_for_the_service() -> None:
    """Both are accepted: each decides about some ports."""
    both = (g.backend_policy("port", "web/https", created=YOUNG), g.backend_policy("all", "web", created=OLD))
    assert [verdict(*both, g.ca_bundle(), name=name)[0] for name in ("port", "all")] == ["Accepted"] * 2


def test_policy_with_a_target_left_is_accepted() -> None:
    """The message names the target that an older policy has."""
    old, young = (
        g.backend_policy("old", "web/https", created=OLD),
        g.backend_policy("tls", "web/https", "web/admin"),
    )
    found = state(old, young, g.ca_bundle())
    lost = "default/old decides about port https of Service default/web, because it is older"
    assert (found.reason, found.message) == ("Accepted", f"the policy is in force; {lost}")
