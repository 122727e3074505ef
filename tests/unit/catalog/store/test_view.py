"""Tests of the view: services, endpoints, identities, groups and kinds."""

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


def test_workload_is_behind_services_by_selector_name_or_slice() -> None:
    """A selector, the primary service without a selector, and a slice each count; other Services do not."""
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


def test_endpoints_of_workloads_and_slices_are_listed_once() -> None:
    """A slice that repeats a workload adds nothing.

    An address without a workload has no identity, and a workload of weight 0 is left out.
    """
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


def test_slice_does_not_match_a_workload_of_another_namespace() -> None:
    """The address has no identity in the slice's namespace, and the workload is behind no service."""
    shop = a.service("shop", app=None)
    mesh = a.view(shop, slice_of("shop", 8080, "10.0.0.1"), a.workload("bank", "10.0.0.1", namespace="bank"))
    assert [endpoint.identity for endpoint in endpoints(mesh, shop.key, shop.ports[0])] == [None]
    assert not any(services_of(mesh, key) for key in mesh.workloads)


def test_mesh_without_a_mesh_config_is_closed() -> None:
    """Neither permissive mode nor egress is on by default."""
    assert a.view().config == MeshConfig(permissive=False, egress=False)


def test_host_names_equal_those_of_the_clusters_dns() -> None:
    """Short names exist in the own namespace. A headless service has one line for each endpoint."""
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


def test_identities_are_those_of_workloads_with_a_sidecar() -> None:
    """Each identity has the names of all services of its workloads."""
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


def test_similar_proxies_share_a_group() -> None:
    """Replicas in transparent interception are one group; each explicit workload is a group of its own."""
    mesh = a.view(
        a.service("shop"),
        a.workload("shop-1", "10.0.0.1", app="shop", account="shop"),
        a.workload("shop-2", "10.0.0.2", app="shop", account="shop"),
        a.workload("shop-3", "10.0.0.3", app="shop", account="canary"),
        a.workload("own-1", "10.0.1.1", app="shop", account="shop", interception=a.explicit("127.0.0.1")),
        a.workload("own-2", "10.0.1.2", app="shop", account="shop", interception=a.explicit("127.0.0.1")),
        a.workload("bare", "10.0.0.4", app="shop", account="shop", sidecar=False),
    )
    assert sorted(tuple(proxy.uuid for proxy in proxies) for proxies in groups(mesh).values()) == [
        ("own-1-uuid",),
        ("own-2-uuid",),
        ("shop-1-uuid", "shop-2-uuid"),
        ("shop-3-uuid",),
    ]


def test_order_of_objects_has_no_effect() -> None:
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
        result = {key: (proxies, proxy_policy(mesh, key)) for key, proxies in groups(mesh).items()}
        expected = expected or result
        assert result == expected


EGRESS = Kind("Egress", "policy.openservicemesh.io")


@dataclass(frozen=True)
class Unread:
    """A value of a kind without a declared table."""

    key: str = "new"


def test_value_without_a_table_is_an_error_and_changes_nothing() -> None:
    """If the view ignored the object silently, its policy would seem to be in force."""
    mesh = a.view(a.service("shop"))
    key = ObjectKey(EGRESS, a.DEFAULT, "new")
    unread = SourcedObject(key, Unread(), InFile("mesh.yaml"))  # type: ignore[arg-type]
    other = SourcedObject(a.object_key(a.service("bank")), a.service("bank"), InFile("mesh.yaml"))
    with pytest.raises(UnreadError, match="Egress default/new: no table was declared for Unread"):
        mesh.apply(Edits({other.key: other, key: unread}))
    assert set(mesh.services) == {a.service_key("shop")}
    assert key not in mesh.sourced


def test_every_object_type_has_a_table() -> None:
    """Each value that a reader can produce is known to the view."""
    assert catalog.store.view._kinds.keys() == set(get_args(MeshObject))


def test_kind_is_declared_in_the_module_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the declaration, the view accepts objects of the kind and their deletion.

    No central file changes.
    """
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
