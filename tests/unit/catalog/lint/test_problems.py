"""Tests of lint for objects that do not fit together: every code, with object, field and value."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from catalog.lint.codes import Code
from catalog.lint.problems import problems
from catalog.store.view import MeshSettings, View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import MESH_CONFIG
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid
from meshwright.mesh.objects import EndpointSlice, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.smi import TrafficSplit, TrafficTarget
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.workload import Edge, WorkloadKey, WorkloadPort
from meshwright.specs.kinds import kind_meant
from tests.meshes import values as a

SHOP = (a.service("shop"), a.workload("shop", "10.0.0.1"), a.route_group("all", a.match("all", ".*")))
FOREIGN = TrafficTarget(
    a.policy_key("t"), a.identity("shop", "bank"), (a.identity("buyer"),), (a.http("all"),)
)
NO_SOURCES = TrafficTarget(a.policy_key("t"), a.identity("shop"), (), (a.http("all"),))
FOREIGN_APEX = TrafficSplit(
    a.policy_key("s"), a.service_key("shop", "bank"), a.split("x", "shop", ("shop", 1)).backends
)
TOOL = WorkloadKey(Namespace("tools"), "bare")
SIX = a.workload("six", "fd00::6", app="shop", account="shop")
BOTH_FAMILIES = replace(
    a.workload("both", "10.0.0.6", app="shop", account="shop"), other_addresses=(IpAddress("fd00::6"),)
)
TWIN = replace(a.workload("twin", "10.0.0.2", app="shop"), uuid=ProxyUuid("shop-uuid"))


@pytest.mark.parametrize(
    ("code", "things", "kind", "name", "field", "value"),
    [
        (
            Code.UNKNOWN_ROUTE,
            [a.target("t", "buyer", "shop", a.http("all"), a.tcp("x"))],
            "TrafficTarget",
            "t",
            "spec.rules[1].name",
            "x",
        ),
        (
            Code.UNKNOWN_MATCH,
            [a.target("t", "buyer", "shop", a.http("all"), a.http("all", "all", "x"))],
            "TrafficTarget",
            "t",
            "spec.rules[1].matches",
            "x",
        ),
        (Code.NO_RULES, [a.target("t", "buyer", "shop")], "TrafficTarget", "t", "spec.rules", ""),
        (
            Code.ALL_REFUSED,
            [a.target("t", "buyer", "shop", a.tcp("x"))],
            "TrafficTarget",
            "t",
            "spec.rules",
            "",
        ),
        (Code.FOREIGN_DESTINATION, [FOREIGN], "TrafficTarget", "t", "spec.destination.namespace", "bank"),
        (Code.NO_SOURCES, [NO_SOURCES], "TrafficTarget", "t", "spec.sources", ""),
        (
            Code.UNKNOWN_APEX,
            [a.split("s", "x", ("shop", 1))],
            "TrafficSplit",
            "s",
            "spec.service",
            "default/x",
        ),
        (Code.UNKNOWN_APEX, [FOREIGN_APEX], "TrafficSplit", "s", "spec.service", "bank/shop"),
        (
            Code.UNKNOWN_BACKEND,
            [a.split("s", "shop", ("shop", 1), ("x", 1))],
            "TrafficSplit",
            "s",
            "spec.backends[1].service",
            "x",
        ),
        (Code.ZERO_WEIGHTS, [a.split("s", "shop", ("shop", 0))], "TrafficSplit", "s", "spec.backends", ""),
        (
            Code.EXCESSIVE_WEIGHTS,
            [a.split("s", "shop", ("shop", 2**32))],
            "TrafficSplit",
            "s",
            "spec.backends",
            str(2**32),
        ),
        (
            Code.UNKNOWN_SPLIT_MATCH,
            [a.split("s", "shop", ("shop", 1), matches=("all", "x"))],
            "TrafficSplit",
            "s",
            "spec.matches",
            "x",
        ),
        (
            Code.OVERRULED_SPLIT,
            [a.split("s", "shop", ("shop", 1)), a.split("a", "shop", ("shop", 1))],
            "TrafficSplit",
            "s",
            "spec.service",
            "default/shop",
        ),
        (
            Code.BACKEND_PORT,
            [
                a.service("other", a.port(81)),
                a.workload("other", "10.0.0.3"),
                a.split("s", "shop", ("shop", 1), ("other", 1)),
            ],
            "TrafficSplit",
            "s",
            "spec.backends",
            "default/other",
        ),
        (Code.NO_ENDPOINTS, [a.service("empty")], "Service", "empty", "spec.selector", "app=empty"),
        (
            Code.OUTSIDE_MESH,
            [a.workload("bare", "10.0.0.9", app="shop", sidecar=False)],
            "Service",
            "shop",
            "endpoints",
            "10.0.0.9:8080",
        ),
        (
            Code.SHARED_ADDRESS,
            [
                a.service("a", app="shop", address="10.96.0.1"),
                a.service("b", app="shop", address="10.96.0.1"),
            ],
            "Service",
            "b",
            "spec.clusterIP",
            "10.96.0.1:80",
        ),
        (
            Code.PROTOCOLS_DIFFER,
            [a.service("raw", a.port(80, 8080, a.TCP), app="shop")],
            "Workload",
            "shop",
            "spec.ports",
            "http by default/shop, tcp by default/raw",
        ),
        (
            Code.UNKNOWN_PRIMARY,
            [a.workload("w", "10.0.0.5", WorkloadPort(Port(1)))],
            "Workload",
            "w",
            "spec.service",
            "w",
        ),
        (Code.NO_WAY_TO_SIDECAR, [SIX], "Workload", "six", "spec.interception.ipv6", "false"),
        (Code.PAST_SIDECAR, [BOTH_FAMILIES], "Workload", "both", "spec.interception.ipv6", "false"),
        (Code.UUID_TWICE, [TWIN], "Workload", "twin", "spec.uuid", "shop-uuid"),
        (
            Code.LISTENER_CONFLICT,
            [
                a.workload(
                    "w",
                    "127.0.0.2",
                    interception=a.explicit(None, ("shop", 80, "127.0.0.3", 1), ("shop", 80, "127.0.0.3", 1)),
                )
            ],
            "Workload",
            "w",
            "spec.upstreams",
            "outbound 127.0.0.3:1 of workload default/w",
        ),
        (
            Code.UNKNOWN_UPSTREAM,
            [a.workload("w", "127.0.0.2", interception=a.explicit(None, ("shop", 81, "127.0.0.3", 1)))],
            "Workload",
            "w",
            "spec.upstreams",
            "default/shop:81",
        ),
    ],
)
def test_each_code_is_reported_once_with_object_field_and_value(
    code: Code, things: Sequence[object], kind: str, name: str, field: str, value: str
) -> None:
    """The problem is reported once, at the object's origin, with field, value and expectation."""
    mesh = a.view(*SHOP, *things)
    result = [problem for problem in problems(mesh) if problem.code == code]
    key = ObjectKey(kind_meant(kind, None), Namespace("default"), name)
    assert [(problem.key, problem.field, problem.value) for problem in result] == [(key, field, value)]
    assert result[0].origin == mesh.sourced[key].origin
    assert result[0].expected


BARE = a.workload("bare", "10.0.0.9", app="db", account="db", sidecar=False)
DATABASE = a.service("db", a.port(5432, 5432, a.TCP))
OF_GATEWAY = a.workload("edge", "10.0.0.9", app="db", account="db", interception=Edge("edge"))


@pytest.mark.parametrize(
    ("things", "codes"),
    [
        ((DATABASE, BARE), []),
        (
            (a.service("api", app=None), EndpointSlice("api", a.DEFAULT, "api", ("192.0.2.1",), (("", 80),))),
            [],
        ),
        ((a.service("later", app="none", namespace="tools"), replace(BARE, key=TOOL)), []),
        ((DATABASE, BARE, a.target("t", "shop", "db", a.http("all"))), ["MW2021"]),
        ((DATABASE, BARE, a.split("s", "db", ("shop", 1))), ["MW2021"]),
        ((DATABASE, BARE, a.split("s", "shop", ("shop", 1), ("db", 1))), ["MW2021"]),
        ((DATABASE, BARE, a.workload("db", "10.0.0.8")), ["MW2021"]),
        ((DATABASE, OF_GATEWAY), []),
        ((a.service("later", app="none"),), ["MW2020"]),
        ((a.service("later", app="none", namespace="tools"),), ["MW2020"]),
    ],
)
def test_service_without_sidecars_is_reported_only_if_the_mesh_uses_it(
    things: Sequence[object], codes: list[str]
) -> None:
    """It is used if a policy names it, or if only some of its workloads lack sidecars.

    An empty Service has no problem if the other workloads of its namespace have no sidecars.
    """
    lines = [problem.code for problem in problems(a.view(*SHOP, *things))]
    assert [item for item in lines if item in ("MW2020", "MW2021")] == codes


def test_valid_mesh_has_no_problems() -> None:
    """A Service with endpoints, a target with rules and a client without a Service have no problems."""
    buyer = a.workload("buyer", "10.0.0.2", interception=a.explicit(None, ("shop", 80, "127.0.0.1", 8001)))
    assert problems(a.view(*SHOP, buyer, a.target("t", "buyer", "shop", a.http("all")))) == ()


def test_apex_of_a_split_without_endpoints_has_no_problem() -> None:
    """An apex needs no endpoints, because the backends of its split answer."""
    assert problems(a.view(*SHOP, a.service("root", app="nobody"), a.split("s", "root", ("shop", 1)))) == ()


@pytest.mark.parametrize(
    ("matches", "value", "expected", "refused"),
    [
        (("all", "al"), "al", " (did you mean all?). The other matches of this rule are in force.", False),
        (("all", "zzz"), "zzz", ". The other matches of this rule are in force.", False),
        (("al", "zzz"), "al, zzz", " (did you mean all?). This rule is not in force.", True),
    ],
)
def test_misspelt_match_is_reported_and_other_matches_stay_in_force(
    matches: tuple[str, ...], value: str, expected: str, refused: bool
) -> None:
    """An error names the unknown match, the existing matches, and the effect on the rule."""
    result = problems(
        a.view(
            *SHOP, a.workload("buyer", "10.0.0.8"), a.target("t", "buyer", "shop", a.http("all", *matches))
        )
    )
    codes = [Code.UNKNOWN_MATCH, Code.ALL_REFUSED] if refused else [Code.UNKNOWN_MATCH]
    assert [problem.code for problem in result] == codes
    assert (result[0].severity, result[0].value) == (Severity.ERROR, value)
    assert result[0].expected == (
        f"HTTPRouteGroup default/all does not have this match; it has all{expected} "
        "Add the match to the group, or correct the name."
    )


def test_osm_mesh_config_takes_precedence_over_other_configs() -> None:
    """The MeshConfig with the name `osm-mesh-config` is in force, and the other one has a warning."""
    keys = [ObjectKey(MESH_CONFIG, Namespace("a"), name) for name in ("aaa", "osm-mesh-config")]
    objects = {
        key: SourcedObject(key, MeshConfig(permissive=key.name == "aaa"), InFile("test", 1, line))
        for line, key in enumerate(keys, 1)
    }
    mesh = View.build(objects, MeshSettings())
    assert not mesh.config.permissive
    assert problems(mesh) == (
        Problem(
            code="MW2040",
            severity=Severity.WARNING,
            origin=InFile("test", 1, 1),
            key=keys[0],
            field="metadata.name",
            value="aaa",
            expected=(
                "MeshConfig a/osm-mesh-config is in force, and this MeshConfig is ignored, because only "
                "one can be in force. Delete one of the two."
            ),
        ),
    )


def test_codes_are_unique_and_documented() -> None:
    """Every code has a value and a meaning of its own, and its number begins with MW20 or MW21."""
    assert len({code.value for code in Code}) == len({code.doc for code in Code}) == len(Code)
    assert all(code.value.startswith(("MW20", "MW21")) and code.doc.endswith(".") for code in Code)
