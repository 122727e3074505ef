"""Tests of lint for Egresses: each problem with its field and value."""

import pytest

from catalog.lint.codes import Code
from catalog.lint.problems import problems
from meshwright.mesh.kinds import EGRESS
from meshwright.mesh.policies.egress import Egress
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimit,
    RateLimits,
    RateUnit,
    UpstreamTrafficSetting,
)
from meshwright.mesh.service import Protocol
from tests.meshes import values as a

BUYER = a.workload("buyer", "10.0.0.9")
WEB = a.egress("web", "buyer", (443, "https"), hosts=("x.test",))
SHOP = (a.service("shop", address="10.96.0.1"), a.workload("shop", "10.0.0.1"))
DB = (a.service("db", a.port(443, 443, Protocol.TCP_SERVER_FIRST)), a.workload("db", "10.0.0.2"))
RANGE = ("192.0.2.0/24",)


def said(*things: object) -> list[tuple[Code, str, str, str]]:
    """Return the problems of Egresses: code, object, field and value."""
    result, codes = problems(a.view(*things)), {code.value: code for code in Code}
    return [
        (codes[problem.code], str(problem.key), problem.field, problem.value)
        for problem in result
        if problem.key and problem.key.kind == EGRESS
    ]


def limited(**more: tuple[str, ...]) -> Egress:
    """Make an Egress over HTTP with the UpstreamTrafficSetting `few`."""
    return a.egress("e", "buyer", (80, "http"), **{"hosts": ("x.test",), **more}, limits="few")


def few(host: str, rates: RateLimits | None = None) -> UpstreamTrafficSetting:
    """Make the UpstreamTrafficSetting `few` for a host."""
    one = ConnectionLimits(connections=1)
    return UpstreamTrafficSetting(a.policy_key("few"), host, one, rates or RateLimits())


UNLIMITED = (Code.EGRESS_LIMITS, "spec.matches", "few")


@pytest.mark.parametrize(
    ("things", "expected"),
    [
        ((WEB,), []),
        ((limited(), few("x.test")), []),
        ((limited(),), [UNLIMITED]),
        ((limited(), few("y.test")), [UNLIMITED]),
        ((limited(networks=RANGE), few("x.test")), [UNLIMITED]),
        ((limited(), few("x.test", RateLimits(RateLimit(1, RateUnit.SECOND)))), [UNLIMITED]),
        (
            (a.egress("e", "buyer", (80, "http"), hosts=("x.test",), groups=("gone",)),),
            [(Code.EGRESS_MATCH, "spec.matches", "gone")],
        ),
        (
            (a.egress("e", "buyer", (80, "http"), groups=("empty",), networks=RANGE), a.route_group("empty")),
            [(Code.EGRESS_MATCH, "spec.matches", "empty")],
        ),
        (
            (a.egress("e", "buyer", (80, "http"), hosts=("shop.default", "x.test")), *SHOP),
            [(Code.EGRESS_TO_MESH, "spec.hosts", "shop.default")],
        ),
        (
            (a.egress("e", "buyer", (80, "tcp"), networks=("10.96.0.1/32", "10.96.0.0/16")), *SHOP),
            [(Code.EGRESS_TO_MESH, "spec.ipAddresses", "10.96.0.1/32")],
        ),
        ((a.egress("e", "buyer", (81, "tcp"), networks=("10.96.0.1/32",)), *SHOP), []),
        (
            (a.egress("e", "nobody", (443, "https"), hosts=("x.test",)),),
            [(Code.EGRESS_SOURCES, "spec.sources", "default/nobody")],
        ),
        (
            (a.egress("e", "buyer", (443, "https"), (443, "tcp"), hosts=("x.test",), networks=RANGE),),
            [(Code.EGRESS_OVERRULED, "spec.ports", "443 https")],
        ),
        (
            (a.egress("e", "buyer", (443, "tcp-server-first"), (443, "https"), hosts=("x.test",)),),
            [(Code.EGRESS_OVERRULED, "spec.ports", "443 https")],
        ),
        ((a.egress("e", "buyer", (443, "https"), hosts=("x.test",)), *DB), []),
        (
            (
                a.egress("e", "buyer", (443, "https"), hosts=("x.test",)),
                *DB,
                a.tcp_route("any"),
                a.target("t", "buyer", "db", a.tcp("any")),
            ),
            [(Code.EGRESS_OVERRULED, "spec.ports", "443 https")],
        ),
    ],
)
def test_problem_of_an_egress_names_its_field_and_value(
    things: tuple[object, ...], expected: list[tuple[Code, str, str]]
) -> None:
    """Each problem of an Egress is reported at the field and value concerned."""
    assert [(code, field, value) for code, _, field, value in said(BUYER, *things)] == expected


def test_overruled_egress_is_reported_for_the_same_client_and_addresses() -> None:
    """The Egress whose hosts are ignored is reported. Other ranges or other clients do not overrule it."""
    wide, other = a.egress("all", "buyer", (443, "tcp"), networks=RANGE), ("198.51.100.0/24",)
    overruled = (Code.EGRESS_OVERRULED, "Egress default/web", "spec.ports", "443 https")
    assert said(BUYER, WEB, wide) == [overruled]
    apart = a.egress("web", "buyer", (443, "https"), hosts=("x.test",), networks=other)
    assert said(BUYER, apart, wide) == []
    assert said(BUYER, *SHOP, WEB, a.egress("all", "shop", (443, "tcp"))) == []


def test_egress_of_an_explicit_client_is_reported() -> None:
    """Such an Egress has no effect, because the client's calls do not pass through its sidecar."""
    buyer = a.workload("buyer", "10.0.0.9", interception=a.explicit(None))
    assert [item[:2] for item in said(buyer, WEB)] == [(Code.EGRESS_EXPLICIT, "Egress default/web")]
