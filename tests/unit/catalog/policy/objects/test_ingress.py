"""Tests of IngressBackends: the callers that they admit, their problems, and the cost of a change."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from catalog.lint.codes import Code
from catalog.lint.problems import problems
from catalog.policy.group_policy import proxy_policy
from catalog.policy.objects.ingress import ingress_rule
from catalog.policy.values.inbound import AccessRule, EveryoneInTheMesh, InboundPort, OnlyRules
from catalog.relations.groups import group_of
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.delivery.snapshots.rendering import GroupInput
from meshwright.delivery.snapshots.translation import translation
from meshwright.engine.graph import Graph
from meshwright.engine.node import Derivation
from meshwright.mesh.kinds import INGRESS_BACKEND
from meshwright.mesh.names import IpAddress, Namespace, Port
from meshwright.mesh.objects import EndpointSlice, ObjectKey
from meshwright.mesh.policies.callers import AuthenticatedName, EncryptedRange, IpRange
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import Workload
from meshwright.sidecars.contract.driver import Piece, Pieces
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.meshes import values as a

BY = ObjectKey(INGRESS_BACKEND, Namespace("default"), "in")
GATEWAY = IpRange("192.0.2.7/32")
NETWORK = IpRange("10.0.0.0/8")
SHOP = (a.service("shop"), a.workload("shop", "10.0.0.1"))
FRONT = (
    a.service("front"),
    a.workload("front-1", "192.0.2.7", app="front", sidecar=False),
    EndpointSlice("front", Namespace("default"), "front-x", ("fd00::7",), (), unready=("192.0.2.8",)),
)
BOTH = (IpRange("192.0.2.7/32"), IpRange("192.0.2.8/32"), IpRange("fd00::7/128"))
BOOKS = a.match("books", "/books.*")


def _port(mesh: View, workload: Workload = SHOP[1]) -> InboundPort:
    group = group_of(mesh, workload)
    assert group is not None
    (port,) = proxy_policy(mesh, group).inbound
    return port


def _plain(name: str = "in", **more: object) -> object:
    return a.ingress(name, ("shop", 8080, "NOTHING"), **{"ranges": ("10.0.0.0/8",), **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("proof", "sources", "callers"),
    [
        ("NOTHING", {"ranges": ("10.0.0.0/8",)}, (NETWORK,)),
        ("NOTHING", {"services": ("front",)}, BOTH),
        ("NOTHING", {"services": ("front",), "ranges": ("10.0.0.0/8",)}, (NETWORK, *BOTH)),
        ("NOTHING", {"services": ("missing",), "principals": ("a.test",)}, None),
        ("NOTHING", {}, None),
        ("CERTIFICATE", {"principals": ("a.test",)}, (AuthenticatedName("a.test"),)),
        (
            "CERTIFICATE",
            {"principals": ("a.test",), "services": ("front",), "server_names": ("s.test",)},
            (AuthenticatedName("a.test", BOTH, ("s.test",)),),
        ),
        # A source service without endpoints does not admit callers from other addresses.
        ("CERTIFICATE", {"principals": ("a.test",), "services": ("missing",)}, None),
        ("ENCRYPTION", {"ranges": ("10.0.0.0/8",), "principals": ("a.test",)}, (EncryptedRange(NETWORK),)),
        ("ENCRYPTION", {"principals": ("a.test",)}, None),
    ],
)
def test_ingress_backend_admits_its_sources_by_address_or_name(
    proof: str, sources: dict[str, tuple[str, ...]], callers: object
) -> None:
    """Addresses of a source service count even if unready, because a gateway calls from there."""
    ingress_backend = a.ingress("in", ("shop", 8080, proof), **sources)  # type: ignore[arg-type]
    mesh = a.view(*SHOP, *FRONT, ingress_backend)
    expected = OnlyRules(() if callers is None else (AccessRule(BY, callers),))  # type: ignore[arg-type]
    assert _port(mesh).access == expected


def test_ingress_rule_is_added_to_permissive_mode() -> None:
    """All identities of the mesh are admitted as before, and the sources of the rule in addition."""
    mesh = a.view(*SHOP, a.namespace("default", permissive=True), _plain())
    assert _port(mesh).access == EveryoneInTheMesh((AccessRule(BY, (NETWORK,)),))


def test_ingress_backend_opens_only_its_service() -> None:
    """Another service whose workloads have the same identity stays closed."""
    bank = a.workload("bank", "10.0.0.2", account="shop")
    mesh = a.view(*SHOP, a.service("bank"), bank, _plain())
    assert _port(mesh).access == OnlyRules((AccessRule(BY, (NETWORK,)),))
    assert _port(mesh, bank).access == OnlyRules()


def test_two_backends_at_one_port_are_one_rule() -> None:
    """Both are one application, so the sources of both backends are admitted."""
    also = a.service("also", app="shop")
    ingress_backend = a.ingress(
        "in",
        ("shop", 8080, "NOTHING"),
        ("also", 8080, "CERTIFICATE"),
        ranges=("10.0.0.0/8",),
        principals=("a.test",),
    )
    port = _port(a.view(*SHOP, also, ingress_backend))
    assert port.access == OnlyRules((AccessRule(BY, (AuthenticatedName("a.test", (NETWORK,)), NETWORK)),))


def test_encrypted_ingress_sets_the_server_names_of_the_mesh() -> None:
    """Clients without a certificate are distinguished by the server name.

    The names are those of all services at the port.
    """
    ingress_backend = a.ingress("in", ("shop", 8080, "ENCRYPTION"), ranges=("10.0.0.0/8",))
    port = _port(a.view(*SHOP, a.service("also", app="shop"), ingress_backend))
    assert port.mesh_names == ("also.default.svc.cluster.local", "shop.default.svc.cluster.local")
    assert _port(a.view(*SHOP, _plain())).mesh_names == ()


def test_missing_match_group_of_an_ingress_backend_admits_nothing() -> None:
    """Existing groups are used. If none exists, no request is admitted."""
    result = _plain(matches=("books", "missing"))
    mesh = a.view(*SHOP, a.route_group("books", BOOKS), result)
    assert _port(mesh).access == OnlyRules((AccessRule(BY, (NETWORK,), (BOOKS,)),))
    assert _port(a.view(*SHOP, result)).access == OnlyRules()


def test_oldest_ingress_backend_is_in_force_at_each_port() -> None:
    """Ties are decided by name, and an object overruled at one port stays in force at others."""
    two = a.service("shop", a.port(80), a.port(81, 8081))
    mine = a.ingress("b", ("shop", 8080, "NOTHING"), ("shop", 8081, "NOTHING"), ranges=("10.0.0.0/8",))
    other = a.ingress("a", ("shop", 8080, "NOTHING"), ranges=("192.0.2.7/32",))
    dated = replace(other, created="2026-01-02T00:00:00Z", key=a.policy_key("z"))
    older = replace(mine, created="2026-01-01T00:00:00Z")
    for mesh, by in (
        (a.view(two, SHOP[1], mine, other), {8080: "a", 8081: "b"}),
        (a.view(two, SHOP[1], mine, dated), {8080: "z", 8081: "b"}),
        (a.view(two, SHOP[1], older, dated), {8080: "b", 8081: "b"}),
    ):
        key = a.service_key("shop")
        rules = {number: ingress_rule(mesh, key, Port(number)) for number in by}
        assert {number: rule and rule.by.name for number, rule in rules.items()} == by


TCP = a.service("shop", a.port(80, 8080, Protocol.TCP))
NAMED = a.service("shop", a.port(80, "web"))


@pytest.mark.parametrize(
    ("things", "code", "field", "value"),
    [
        ([a.service("shops"), _plain()], Code.UNKNOWN_INGRESS_BACKEND, "spec.backends", "shop"),
        (
            [*SHOP, a.ingress("in", ("shop", 80, "NOTHING"), ranges=("10.0.0.0/8",))],
            Code.INGRESS_PORT,
            "spec.backends",
            "shop:80",
        ),
        ([TCP, SHOP[1], _plain()], Code.INGRESS_NOT_HTTP, "spec.backends", "shop:8080"),
        (
            [*SHOP, _plain(services=("fronts",)), a.service("front", app="no")],
            Code.UNKNOWN_INGRESS_SOURCE,
            "spec.sources",
            "default/fronts",
        ),
        (
            [*SHOP, _plain(services=("front",)), a.service("front", app="no")],
            Code.UNKNOWN_INGRESS_SOURCE,
            "spec.sources",
            "default/front",
        ),
        ([*SHOP, _plain(matches=("missing",))], Code.UNKNOWN_INGRESS_MATCH, "spec.matches", "missing"),
        (
            [*SHOP, a.route_group("none"), _plain(matches=("none",))],
            Code.UNKNOWN_INGRESS_MATCH,
            "spec.matches",
            "",
        ),
        (
            [*SHOP, _plain(), _plain("a")],
            Code.OVERRULED_INGRESS,
            "spec.backends",
            "shop:8080",
        ),
    ],
)
def test_problem_of_an_ingress_backend_names_its_field_and_value(
    things: Sequence[object], code: Code, field: str, value: str
) -> None:
    """Each object has exactly one problem."""
    result = [problem for problem in problems(a.view(*things)) if problem.key == BY]
    assert [(problem.code, problem.field, problem.value) for problem in result] == [
        (code.value, field, value)
    ]


@pytest.mark.parametrize("things", [[*SHOP, *FRONT, _plain(services=("front",))], [NAMED, _plain()]])
def test_valid_ingress_backend_has_no_problem(things: Sequence[object]) -> None:
    """A named target port is not reported while no workload gives its number."""
    assert [problem for problem in problems(a.view(*things)) if problem.key == BY] == []


@pytest.mark.parametrize("others", [2, 20])
def test_moved_gateway_translates_only_the_backends_that_it_opens(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Independent of the number of other services, one group is translated and one rule computed."""
    things = [
        item
        for number in range(others)
        for item in (a.service(f"other-{number}"), a.workload(f"other-{number}", f"10.1.0.{number}"))
    ]
    moved = replace(FRONT[1], address=IpAddress("192.0.2.9"))
    mesh = a.view(*SHOP, *FRONT, *things, _plain(services=("front",)))
    translated: list[str] = []
    translate = translation(EnvoyDriver())

    def noted(need: GroupInput) -> Iterable[Piece | Pieces]:
        translated.append(need.policy.identity.service_account)
        return translate(need)

    serving, published = GroupSnapshots(mesh, noted), PublishedSnapshots()
    identities = {workload.identity for workload in mesh.workloads.values()}
    serving.rendering.certify({identity: a.certificate(identity, "1") for identity in identities}, b"ROOT")
    for step in serving.steps(published, serving.touched()):
        published = published if step is None else step.after(published)
    computed: Counter[str] = Counter()
    compute = Graph._compute

    def counting(self: Graph, node: Derivation) -> None:
        computed[node.family.name] += 1
        compute(self, node)

    monkeypatch.setattr(Graph, "_compute", counting)
    translated.clear()
    mesh.apply(Edits(a.objects(moved)))
    steps = [item for item in serving.steps(published, serving.touched()) if item is not None]
    changed = {name.split("|")[1] for step in steps for name in step.snapshots}
    assert (translated, changed) == (["shop"], {"shop"})
    assert computed["catalog.policy.objects.ingress.ingress_rule"] == 1
    assert computed["catalog.policy.inbound.inbound_ports"] == 1
