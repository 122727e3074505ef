"""What a view makes of objects and workloads."""

from dataclasses import dataclass
from typing import get_args

import pytest

import catalog.store.view
from catalog.policy.group_policy import proxy_policy
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.workloads import services_of
from catalog.relations.groups import groups
from catalog.relations.hosts import hosts
from catalog.relations.identities import service_identities
from catalog.store.edits import Edits
from catalog.store.view import IN_VIEW, MeshSettings, UnreadError, kind, kind_in
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.objects import EndpointSlice, MeshObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import Endpoint, WorkloadKey, WorkloadPort
from tests.meshes import values as a


def slice_of(name: str, number: int, *addresses: str, port_name: str = "") -> EndpointSlice:
    """Make an endpoint slice of a service."""
    return EndpointSlice(name, a.DEFAULT, f"{name}-1", addresses, ((port_name, number),))


def test_a_workload_backs_what_selects_names_or_lists_it() -> None:
    """Selectors, the primary service of a Service without selector, and slices all tie; others do not."""
    mesh = a.view(
        a.service("selected", app="shop"),
        a.service("shop", app=None),
        a.service("listed", app=None),
        a.service("other", app="else"),
        a.service("elsewhere", app="shop", namespace="other"),
        slice_of("listed", 8080, "10.0.0.1"),
        a.workload("shop", "10.0.0.1"),
    )
    (only,) = mesh.workloads
    assert services_of(mesh, only) == (
        a.service_key("listed"),
        a.service_key("selected"),
        a.service_key("shop"),
    )


def test_endpoints_come_from_workloads_and_slices_once_each() -> None:
    """A slice that repeats a workload adds nothing; an address that nobody knows has no identity."""
    shop = a.service("shop", a.port(80, "web", name="web"))
    mesh = a.view(
        shop,
        a.workload("shop-1", "10.0.0.1", WorkloadPort(Port(8080), "web"), app="shop", weight=3),
        a.workload("shop-2", "10.0.0.2", WorkloadPort(Port(9090), "web"), app="shop", sidecar=False),
        a.workload("shop-3", "10.0.0.3", WorkloadPort(Port(8080), "web"), app="shop", weight=0),
        slice_of("shop", 8080, "10.0.0.1", "10.0.0.3", "10.9.9.9", port_name="web"),
    )
    key, here = shop.key, Port(80)
    name = mesh.workloads[WorkloadKey(a.DEFAULT, "shop-1")].proxy_name
    assert name is not None
    assert endpoints(mesh, key, shop.ports[0]) == (
        Endpoint(
            key, here, IpAddress("10.0.0.1"), Port(8080), a.identity("shop-1"), weight=3, proxies=(name,)
        ),
        Endpoint(key, here, IpAddress("10.0.0.2"), Port(9090), None),
        Endpoint(key, here, IpAddress("10.9.9.9"), Port(8080), None),
    )


def test_a_slice_cannot_borrow_another_namespaces_workload() -> None:
    """An address of another namespace's workload is nobody's in this one, and that one gets no port."""
    shop = a.service("shop", app=None)
    mesh = a.view(shop, slice_of("shop", 8080, "10.0.0.1"), a.workload("bank", "10.0.0.1", namespace="bank"))
    assert [each.identity for each in endpoints(mesh, shop.key, shop.ports[0])] == [None]
    assert not any(services_of(mesh, key) for key in mesh.workloads)


def test_the_default_is_closed() -> None:
    """Without a MeshConfig nobody may do anything."""
    assert a.view().config == MeshConfig(permissive=False, egress=False)


def test_hosts_are_what_dns_would_say() -> None:
    """Cluster addresses, short names in the own namespace; headless, a line per endpoint."""
    mesh = a.view(
        a.service("fixed", address="10.96.0.1"),
        a.service("nodes", headless=True),
        a.service("far", namespace="other", address="10.96.0.2"),
        a.workload("node-1", "10.0.0.1", app="nodes"),
        a.workload("node-2", "10.0.0.2", app="nodes"),
        settings=MeshSettings(cluster_domain="mesh.example"),
    )
    short = ("nodes", "nodes.default", "nodes.default.svc", "nodes.default.svc.mesh.example")
    assert hosts(mesh, a.DEFAULT) == (
        ("10.96.0.1", ("fixed", "fixed.default", "fixed.default.svc", "fixed.default.svc.mesh.example")),
        ("10.0.0.1", (*(f"node-1.{name}" for name in short), *short)),
        ("10.0.0.2", (*(f"node-2.{name}" for name in short), *short)),
        ("10.96.0.2", ("far.other", "far.other.svc", "far.other.svc.mesh.example")),
    )


def test_identities_are_those_with_a_sidecar() -> None:
    """An identity has the names of all services its workloads back; one without a sidecar has none."""
    mesh = a.view(
        a.service("shop", app="shop"),
        a.service("shop-v1", app="shop"),
        a.workload("shop", "10.0.0.1"),
        a.workload("client", "10.0.0.2"),
        a.workload("bare", "10.0.0.3", sidecar=False),
    )
    assert service_identities(mesh) == {
        a.identity("client"): (),
        a.identity("shop"): ("shop-v1.default.svc.cluster.local", "shop.default.svc.cluster.local"),
    }


def test_like_proxies_share_a_group() -> None:
    """Replicas in transparent interception are one group; explicit ones are each their own."""
    mesh = a.view(
        a.service("shop"),
        a.workload("shop-1", "10.0.0.1", app="shop", account="shop"),
        a.workload("shop-2", "10.0.0.2", app="shop", account="shop"),
        a.workload("shop-3", "10.0.0.3", app="shop", account="canary"),
        a.workload("own-1", "10.0.1.1", app="shop", account="shop", interception=a.explicit("127.0.0.1")),
        a.workload("own-2", "10.0.1.2", app="shop", account="shop", interception=a.explicit("127.0.0.1")),
        a.workload("bare", "10.0.0.4", app="shop", account="shop", sidecar=False),
    )
    assert sorted(tuple(each.uuid for each in proxies) for proxies in groups(mesh).values()) == [
        ("own-1-uuid",),
        ("own-2-uuid",),
        ("shop-1-uuid", "shop-2-uuid"),
        ("shop-3-uuid",),
    ]


def test_order_of_input_never_matters() -> None:
    """The same objects in any order give the same groups and policies."""
    things: list[object] = [
        a.service("shop", a.port(80), a.port(3306, 3306, Protocol.TCP)),
        a.service("shop-v1", app="shop"),
        a.workload("shop", "10.0.0.1"),
        a.workload("buyer", "10.0.0.2"),
        a.workload("buyer-2", "10.0.0.3", app="buyer", account="buyer"),
        a.route_group("all", a.match("all", ".*"), a.match("books", "/books", "GET")),
        a.tcp_route("any"),
        a.target("a", "buyer", "shop", a.http("all", "books")),
        a.target("b", "buyer", "shop", a.tcp("any")),
        a.split("s", "shop", ("shop-v1", 1), ("shop", 2)),
    ]
    expected = None
    for turn in range(len(things)):
        mesh = a.view(*things[turn:], *reversed(things[:turn]))
        found = {key: (proxies, proxy_policy(mesh, key)) for key, proxies in groups(mesh).items()}
        expected = expected or found
        assert found == expected


EGRESS = Kind("Egress", "policy.openservicemesh.io")


@dataclass(frozen=True)
class Unread:
    """A value of a kind that nobody has declared a table for."""

    key: str = "new"


def test_a_value_that_nobody_reads_is_an_error_and_changes_nothing() -> None:
    """Silence would look like a policy in force."""
    mesh = a.view(a.service("shop"))
    key = ObjectKey(EGRESS, a.DEFAULT, "new")
    unread = SourcedObject(key, Unread(), InFile("mesh.yaml"))  # type: ignore[arg-type]
    other = SourcedObject(a.object_key(a.service("bank")), a.service("bank"), InFile("mesh.yaml"))
    with pytest.raises(UnreadError, match="Egress default/new: no table was declared for Unread"):
        mesh.apply(Edits({other.key: other, key: unread}))
    assert set(mesh.services) == {a.service_key("shop")}
    assert key not in mesh.sourced


def test_every_object_that_there_is_has_somewhere_to_stand() -> None:
    """No reader's value can meet a view that does not know it."""
    assert catalog.store.view._kinds.keys() == set(get_args(MeshObject))


def test_a_kind_is_declared_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """No central file is touched for it: the view takes in its objects, and lets them go."""
    monkeypatch.setattr(catalog.store.view, "_kinds", dict(catalog.store.view._kinds))
    monkeypatch.setattr(IN_VIEW, "_declared", list(IN_VIEW._declared))
    unread = kind(Unread, EGRESS, "Egresses of this test", lambda value: value.key)
    mesh = a.view(a.service("shop"))
    key = ObjectKey(EGRESS, a.DEFAULT, "new")
    mesh.apply(Edits({key: SourcedObject(key, Unread(), InFile("mesh.yaml"))}))  # type: ignore[arg-type]
    assert unread(mesh) == {"new": Unread()}
    assert kind_in("Egresses of this test") == EGRESS
    mesh.apply(Edits({key: None}))
    assert unread(mesh) == {}
