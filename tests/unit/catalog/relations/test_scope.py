"""Tests of narrowed scopes: they limit what a proxy knows, and never what a server admits."""

import pytest

from catalog.explain import explain
from catalog.explain.remedy import remedy
from catalog.oracle.decide import Answer, Request, decide
from catalog.policy.group_policy import proxy_policy
from catalog.policy.inbound import access
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import members
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Port
from meshwright.mesh.service import Scope
from tests.meshes import values as a
from tests.meshes.resources import resources
from tests.tools.observed_values import Pin
from xds.protocol.resources.resource import CLUSTER

PERMISSIVE = MeshConfig(permissive=True)
SHOPS = (
    *(a.service(name, namespace=space) for space in ("one", "two") for name in ("books", "db")),
    *(
        a.workload(name, f"10.0.{n}.{m}", namespace=space)
        for n, space in enumerate(("one", "two"))
        for m, name in enumerate(("books", "db"))
    ),
)


def policy_of(mesh: View, name: str = "client") -> ProxyPolicy:
    """Return the policy of a workload's proxy."""
    (group,) = (
        key for key in members(mesh) if any(workload_key.name == name for workload_key in members(mesh)[key])
    )
    return proxy_policy(mesh, group)


def told(mesh: View, name: str = "client") -> list[str]:
    """Return the services in a proxy's policy."""
    return [str(outbound_service.upstream) for outbound_service in policy_of(mesh, name).outbound]


@pytest.mark.parametrize(
    ("own", "of_namespace", "expected"),
    [
        (None, None, ["one/books", "one/db", "two/books", "two/db"]),
        (a.narrowed("one/*"), None, ["one/books", "one/db"]),
        (a.narrowed("*/db"), None, ["one/db", "two/db"]),
        (a.narrowed("two/books", "one/db", "no/where"), None, ["one/db", "two/books"]),
        (a.narrowed("*/*"), a.narrowed("one/books"), ["one/books", "one/db", "two/books", "two/db"]),
        (None, a.narrowed("one/books"), ["one/books"]),
        (a.narrowed("two/db"), a.narrowed("one/books"), ["two/db"]),
        ((), None, []),
        (None, (), []),
    ],
)
def test_scope_of_a_workload_overrides_that_of_its_namespace(
    own: Scope, of_namespace: Scope, expected: list[str]
) -> None:
    """In a permissive mesh, a client knows exactly the services that fit a pattern; `*` fits every name."""
    client = a.workload("client", "10.0.9.9", scope=own)
    mesh = a.view(*SHOPS, client, a.namespace("default", scope=of_namespace), PERMISSIVE)
    assert told(mesh) == expected
    for key in ("one/books", "one/db", "two/books", "two/db"):
        space, name = key.split("/")
        asked = Request(a.identity("client"), a.service_key(name, space), Port(80), "GET", "/")
        expected_answer = Answer.ALLOWED if key in expected else Answer.UNREACHABLE
        assert decide(mesh, asked).answer is expected_answer


def test_scope_grants_no_access() -> None:
    """A service in the scope that no policy allows is not in the client's policy."""
    mesh = a.view(
        *SHOPS[:1],
        a.service("shop"),
        a.service("spare"),
        a.workload("shop", "10.0.0.1"),
        a.workload("spare", "10.0.0.2"),
        a.workload("client", "10.0.9.9", scope=a.narrowed("default/shop", "one/*")),
        a.route_group("all", a.match("all")),
        a.target("t", "client", "shop", a.http("all")),
        a.target("u", "client", "spare", a.http("all")),
    )
    assert told(mesh) == ["default/shop"]


def test_scope_has_no_effect_on_servers() -> None:
    """A scope is no security boundary: the server admits the same callers with and without it."""
    plain, narrow = (
        a.view(*SHOPS, a.workload("client", "10.0.9.9", scope=item), PERMISSIVE) for item in (None, ())
    )
    one, other = (access(view, a.identity("db", "one"), Port(8080), a.HTTP) for view in (plain, narrow))
    assert one == other


def test_backends_of_an_apex_in_scope_are_clusters_only() -> None:
    """The client can call the apex, while its backends are no services to call."""
    mesh = a.view(
        a.service("root"),
        a.service("shop"),
        a.workload("shop", "10.0.0.1"),
        a.workload("client", "10.0.9.9", scope=a.narrowed("*/root")),
        a.split("s", "root", ("shop", 1)),
        PERMISSIVE,
    )
    assert told(mesh) == ["default/root"]
    assert [
        service_destination.service.name for service_destination in policy_of(mesh).service_destinations
    ] == ["shop"]


def test_scope_narrows_explicit_upstreams() -> None:
    """One rule applies to both interceptions."""
    upstreams = a.explicit(None, ("shop", 80, "127.0.0.1", 8001), ("spare", 80, "127.0.0.1", 8002))
    things = (
        a.service("shop"),
        a.service("spare"),
        a.workload("shop", "10.0.0.1"),
        a.workload("spare", "10.0.0.2"),
    )
    client = a.workload("client", "10.0.9.9", interception=upstreams, scope=a.narrowed("*/spare"))
    assert told(a.view(*things, client, PERMISSIVE)) == ["default/spare"]


def test_scope_of_five_services_gives_five_clusters() -> None:
    """In a permissive mesh of 200 services, a client without a scope has 200 clusters."""
    many = [a.service(f"s{n}") for n in range(200)]
    few = a.narrowed(*(f"default/s{n}" for n in range(5)))
    counts = []
    for scope in (few, None):
        mesh = a.view(*many, a.workload("client", "10.0.9.9", app="none", scope=scope), PERMISSIVE)
        made = resources(policy_of(mesh))
        counts.append(sum(resource.type_url == CLUSTER for resource in made))
        assert len(policy_of(mesh).service_destinations) == (5 if scope else 200)
    assert counts == [5, 200]


def test_endpoints_of_a_service_outside_the_scope_compute_no_policy() -> None:
    """Changed endpoints of such a service do not make the client's policy stale."""
    mesh = a.view(*SHOPS, a.workload("client", "10.0.9.9", scope=a.narrowed("one/books")), PERMISSIVE)
    (group,) = (key for key in members(mesh) if key.identity == a.identity("client"))
    pin = Pin(proxy_policy, mesh, group)
    before = pin.value()
    moved = [shop for shop in SHOPS if shop != SHOPS[-1]] + [a.workload("db", "10.7.7.7", namespace="two")]
    after = a.view(*moved, a.workload("client", "10.0.9.9", scope=a.narrowed("one/books")), PERMISSIVE)
    mesh.apply(mesh.edits_to(after.known()))
    assert not pin.node.stale
    assert pin.value() == before


def test_explanation_names_the_scope_as_the_cause() -> None:
    """The Workload with the scope is named, and no policy is missing."""
    client = a.workload("client", "10.0.9.9", scope=a.narrowed("one/books", "*/db"))
    mesh = a.view(client, *SHOPS, PERMISSIVE)
    asked = Request(a.identity("client"), a.service_key("books", "two"), Port(80), "GET", "/")
    explanation = explain(mesh, asked)
    assert explanation.decision.answer is Answer.UNREACHABLE
    assert (explanation.missing, remedy(mesh, asked)) == ((), ())
    by = "Workload default/client"
    text = (
        f"{by} limits the Services that its sidecar knows to one/books, */db; two/books is not one "
        "of them, so its sidecar does not know the Service."
    )
    assert text in [step.text for step in explanation.steps]
    besides = f"{by} limits the Services that its sidecar knows, and two/books is not one of them"
    assert explanation.besides == (besides,)
    assert explanation.steps[-1].text.endswith(f" The cause is not a missing policy: {besides}.")


def test_missing_policy_is_reported_together_with_the_scope() -> None:
    """Both are named. Without the scope, the same manifests are still missing."""
    asked = Request(a.identity("client"), a.service_key("books", "two"), Port(80), "GET", "/")
    narrow, wide = (
        explain(a.view(a.workload("client", "10.0.9.9", scope=a.narrowed(item)), *SHOPS), asked)
        for item in ("one/books", "*/*")
    )
    assert len(narrow.besides) == 1
    assert wide.besides == ()
    assert narrow.missing == wide.missing != ()


def test_scope_of_some_workloads_of_an_identity_makes_the_answer_depend() -> None:
    """The answer depends on the calling workload, and no policy is missing for the others."""
    one = a.workload("client-1", "10.0.9.8", account="client", scope=())
    other = a.workload("client-2", "10.0.9.9", account="client")
    mesh = a.view(*SHOPS, one, other, PERMISSIVE)
    asked = Request(a.identity("client"), a.service_key("books", "two"), Port(80), "GET", "/")
    explanation = explain(mesh, asked)
    assert explanation.decision.answer is Answer.DEPENDS
    assert explanation.missing == ()
