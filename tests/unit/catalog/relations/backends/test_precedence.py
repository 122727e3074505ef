"""Tests of precedence between claims: healthy ones first, then by age, and finally by name."""

import json
from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from catalog.explain import in_the_mesh
from catalog.lint.codes import Code
from catalog.lint.problems import problems
from catalog.oracle.decide import Answer, Request, decide
from catalog.policy.inbound import inbound_ports
from catalog.policy.reachable import open_to_all
from catalog.relations.backends.addresses import home, virtual_address
from catalog.relations.backends.endpoints import endpoints, sidecars_at
from catalog.relations.backends.localities import locality_of
from catalog.relations.conflicts import conflicts
from catalog.relations.groups import group_of, groups
from catalog.store.inventory import claimant_of, has_proxy
from catalog.store.view import MeshSettings, View
from meshwright.admin.pages.calls.access_line import question
from meshwright.mesh.config import MeshConfig, SidecarSettings
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName, SidecarKey
from meshwright.mesh.kinds import MESH_CONFIG
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid
from meshwright.mesh.objects import EndpointSlice, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.upstreams import LocalityPreference, LocalityScope, UpstreamPolicy
from meshwright.mesh.service import Protocol, Service
from meshwright.mesh.workload import Health, Workload
from tests.meshes import values as a

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
PORT = a.port(80)
SHOP = a.service_key("shop")


def _pod(name: str, health: Health = Health.READY, created: str = "", account: str = "shop") -> Workload:
    workload = a.workload(name, "10.0.0.1", app="shop", account=account)
    return replace(workload, health=health, created=created)


def _proxies(*pods: Workload, slices: tuple[EndpointSlice, ...] = ()) -> list[tuple[tuple[str, ...], Health]]:
    result = endpoints(a.view(a.service("shop"), *pods, *slices), SHOP, PORT)
    return [
        (tuple(str(proxy.uuid).removesuffix("-uuid") for proxy in endpoint.proxies), endpoint.health)
        for endpoint in result
    ]


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
@pytest.mark.parametrize("health", [Health.UNREADY, Health.DRAINING])
def test_address_of_two_pods_belongs_to_the_ready_one(former: str, now: str, health: Health) -> None:
    """A Pod that ends, or whose node is gone, may still exist when another Pod has its address."""
    pods = (_pod(former, health, OLD), _pod(now, Health.READY, NEW))
    endpoint_slice = EndpointSlice("shop", Namespace("default"), "shop-1", ("10.0.0.1",), (("", 8080),))
    assert _proxies(*pods) == _proxies(*pods, slices=(endpoint_slice,)) == [((now,), Health.READY)]


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
@pytest.mark.parametrize("health", list(Health))
def test_address_of_two_equally_healthy_pods_belongs_to_the_younger(
    former: str, now: str, health: Health
) -> None:
    """A network assigns an address again only after its former Pod has ended."""
    assert _proxies(_pod(former, health, OLD), _pod(now, health, NEW)) == [((now,), health)]


def test_former_pod_does_not_hide_the_identity_at_an_address() -> None:
    """With two identities at the address, an endpoint of a slice would have none."""
    view = a.view(_pod("a", Health.UNREADY, OLD, account="other"), _pod("b", Health.READY, NEW))
    there = sidecars_at(view, Namespace("default"), IpAddress("10.0.0.1"), PORT.port)
    assert [workload.key.name for workload in there] == ["b"]


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
def test_explanation_of_an_address_concerns_the_ready_pod(former: str, now: str) -> None:
    """This holds for a question about the address, and for a line of the Pod's access log."""
    pods = [
        replace(a.workload(f"{name}-1", "10.0.0.1", app=name, account=name), health=health, created=created)
        for name, health, created in ((former, Health.UNREADY, OLD), (now, Health.READY, NEW))
    ]
    view = a.view(a.service(former), a.service(now), *pods)
    text = in_the_mesh(view, HostPort(IpAddress("10.0.0.1"), Port(8080)), a.identity("client"))
    assert text == f"this is the address of workload default/{now}-1: ask about a Service of this workload"
    line = {"start_time": NEW, "local_address": "10.0.0.1:8080", "caller": "spiffe://m/ns/default/sa/client"}
    asked = question(view, {"line": json.dumps(line)}, ())
    assert (asked.query["from"], asked.query["to"]) == ("default/client", f"default/{now}:80")


def test_pod_of_another_namespace_takes_no_address() -> None:
    """A claim in one namespace never hides a Pod of another namespace."""
    theirs = replace(a.workload("b", "10.0.0.1", app="shop", namespace="theirs"), created=NEW)
    assert _proxies(_pod("a", Health.UNREADY, OLD), theirs) == [(("a",), Health.UNREADY)]


@pytest.mark.parametrize(
    ("one", "other", "holder"),
    [
        ((Health.UNREADY, OLD), (Health.READY, NEW), "b"),
        ((Health.READY, NEW), (Health.READY, OLD), "b"),
        ((Health.READY, ""), (Health.READY, OLD), "b"),
        ((Health.READY, OLD), (Health.READY, NEW), "a"),
        ((Health.READY, ""), (Health.READY, ""), "a"),
    ],
)
def test_uuid_belongs_to_the_ready_workload_then_to_the_older_one(
    one: tuple[Health, str], other: tuple[Health, str], holder: str
) -> None:
    """Only its holder has a proxy; between workloads of one age the first name decides."""
    uuid = ProxyUuid("u")
    pods = [
        replace(a.workload(name, address), uuid=uuid, health=health, created=created)
        for name, address, (health, created) in (("a", "10.0.0.1", one), ("b", "10.0.0.2", other))
    ]
    view = a.view(*pods)
    workload = claimant_of(view, SidecarKey(Namespace("default"), uuid))
    assert workload is not None
    assert workload.key.name == holder
    assert [len(proxies) for proxies in groups(view).values()] == [1]


def test_both_proxies_of_one_uuid_have_a_workload() -> None:
    """One of them is served, and the certificates of both are kept: each may be the served one tomorrow."""
    view = a.view(
        replace(a.workload("shop", "10.0.0.1"), uuid=ProxyUuid("u")),
        replace(a.workload("till", "10.0.0.2"), uuid=ProxyUuid("u")),
    )
    names = [ProxyName.parse(f"u.{service}.default") for service in ("shop", "till", "other")]
    assert [has_proxy(view, name) for name in names] == [True, True, False]


def _raw(name: str, created: str) -> Service:
    return replace(a.service(name, a.port(443, 8080, Protocol.TCP), app="shop"), created=created)


def _spoken_by(created: str, name: str, other: str) -> tuple[Protocol, Answer, Answer]:
    """Return the port's protocol, and the answers to calls of the shop and of the other Service."""
    shop = replace(a.service("shop"), created=created)
    policy = (a.route_group("all", a.match("all")), a.target("t", "client", "shop", a.http("all")))
    tcp = (a.tcp_route("raw"), a.target("t2", "client", "shop", a.tcp("raw")))
    pod = a.workload("shop-1", "10.0.0.1", app="shop", account="shop")
    view = a.view(shop, _raw(name, other), pod, a.workload("client", "10.0.0.2"), *policy, *tcp)
    (inbound,) = inbound_ports(view, group_of(view, pod))
    answers = [
        decide(view, Request(a.identity("client"), a.service_key(service), Port(number))).answer
        for service, number in (("shop", 80), (name, 443))
    ]
    return inbound.protocol, answers[0], answers[1]


@pytest.mark.parametrize("name", ["front", "zfront"])
def test_older_service_decides_the_protocol_of_a_port(name: str) -> None:
    """Calls of the younger Service fail, and the oracle agrees."""
    assert _spoken_by(OLD, name, NEW) == (Protocol.HTTP, Answer.ALLOWED, Answer.REFUSED)
    assert _spoken_by(NEW, name, OLD)[:2] == (Protocol.TCP, Answer.REFUSED)


def test_name_decides_the_protocol_between_services_without_ages() -> None:
    """Objects in files have no creationTimestamp; the oracle agrees."""
    assert _spoken_by("", "front", "")[:2] == (Protocol.TCP, Answer.REFUSED)
    assert _spoken_by("", "zfront", "")[:2] == (Protocol.HTTP, Answer.ALLOWED)


def test_address_and_port_of_two_services_belong_to_the_older_one() -> None:
    """Sidecars cannot distinguish the calls of the two Services."""
    both = [
        replace(a.service(name, address="10.96.0.1", app="shop"), created=created)
        for name, created in (("a", NEW), ("b", OLD))
    ]
    config = MeshConfig(permissive=True)
    view = a.view(config, *both, a.workload("shop-1", "10.0.0.1", app="shop"))
    assert [str(service.upstream) for service in open_to_all(view, None, False).services] == ["default/b"]


def _headless(namespace: str, created: str, health: Health) -> tuple[Service, Workload]:
    """Return a headless Service and its only Pod, both in one namespace."""
    service = replace(a.service("db", headless=True, namespace=namespace), created=created)
    pod = a.workload("db-0", "10.0.0.1", app="db", account="db", namespace=namespace)
    return service, replace(pod, health=health)


def _called_by_address(*things: object) -> tuple[list[str], list[str]]:
    """Return the Services that are called at the Pods' address, and those reported as not called."""
    view = a.view(MeshConfig(permissive=True), *things)
    offered = [str(service.upstream) for service in open_to_all(view, None, False).services]
    lines = [str(problem.key) for problem in problems(view) if problem.code == Code.SHARED_ADDRESS.value]
    return offered, lines


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
@pytest.mark.parametrize("health", [Health.UNREADY, Health.DRAINING])
def test_endpoint_of_two_headless_services_belongs_to_the_ready_pod(
    former: str, now: str, health: Health
) -> None:
    """A former Pod takes no calls for the Pod that has its address now.

    The age of its Service and another namespace do not matter.
    """
    things = (*_headless(former, OLD, health), *_headless(now, NEW, Health.READY))
    assert _called_by_address(*things) == ([f"{now}/db"], [f"Service {former}/db"])


@pytest.mark.parametrize("health", list(Health))
def test_endpoint_of_equally_healthy_headless_pods_belongs_to_the_older_service(health: Health) -> None:
    """Age decides as for Services with an address. Health has no effect on a single claim."""
    things = (*_headless("a", NEW, health), *_headless("z", OLD, health))
    assert _called_by_address(*things) == (["z/db"], ["Service a/db"])
    assert _called_by_address(*_headless("a", NEW, health)) == (["a/db"], [])


def test_service_that_publishes_unready_pods_keeps_their_addresses() -> None:
    """Its Pods are called before they are ready, so a younger Service takes none of their addresses."""
    mine, pod = _headless("z", OLD, Health.UNREADY)
    things = (replace(mine, publish_not_ready=True), pod, *_headless("a", NEW, Health.READY))
    assert _called_by_address(*things) == (["z/db"], ["Service a/db"])


def test_virtual_address_of_two_services_stays_with_the_older_one() -> None:
    """A younger Service whose name has the same hash is moved, even if its name comes first."""
    network = IPv4Network("240.0.0.0/30")
    at_home = home(a.service_key("zz"), network)
    first = next(item for item in "abcdefgh" if home(a.service_key(item), network) == at_home)
    things = (replace(a.service(first), created=NEW), replace(a.service("zz"), created=OLD))
    view = a.view(*things, settings=MeshSettings(virtual_addresses=network))
    assert virtual_address(view, a.service_key("zz")) == at_home
    assert virtual_address(view, a.service_key(first)) != at_home


def _zoned(name: str, health: Health, zone: str) -> EndpointSlice:
    places = {item: ("10.0.0.1",) if item is health else () for item in Health}
    return EndpointSlice(
        "shop",
        Namespace("default"),
        name,
        places[Health.READY],
        (("", 8080),),
        places[Health.DRAINING],
        places[Health.UNREADY],
        (("10.0.0.1", zone),),
    )


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
@pytest.mark.parametrize("health", [Health.UNREADY, Health.DRAINING])
def test_zone_of_an_address_in_two_slices_is_that_of_the_ready_pod(
    former: str, now: str, health: Health
) -> None:
    """The slices are of a former Pod and of the Pod that has its address now, in either order by name."""
    slices = (
        _zoned(f"shop-{former}", health, f"zone-{former}"),
        _zoned(f"shop-{now}", Health.READY, f"zone-{now}"),
    )
    nearest = UpstreamPolicy(a.policy_key("near"), SHOP, nearest=LocalityPreference(LocalityScope.ZONE))
    view = a.view(a.service("shop"), _pod("x"), *slices, nearest)
    (endpoint,) = endpoints(view, SHOP, PORT)
    assert endpoint.locality == locality_of(view, _pod("x")) == f"/zone-{now}"


def _configs(*named: tuple[str, str, str]) -> dict[ObjectKey, SourcedObject]:
    """Return MeshConfigs of these namespaces, names and ages; the log level of each is its index."""
    keys = [ObjectKey(MESH_CONFIG, Namespace(namespace), name) for namespace, name, _ in named]
    return {
        key: SourcedObject(
            key,
            MeshConfig(sidecar=SidecarSettings(log_level=str(place)), created=named[place][2]),
            InFile("x"),
        )
        for place, key in enumerate(keys)
    }


@pytest.mark.parametrize(
    ("named", "counts"),
    [
        ((("a", "osm-mesh-config", NEW), ("b", "osm-mesh-config", OLD)), 1),
        ((("a", "osm-mesh-config", ""), ("b", "osm-mesh-config", OLD)), 1),
        ((("a", "osm-mesh-config", OLD), ("b", "osm-mesh-config", OLD)), 0),
        ((("a", "aaa", NEW), ("a", "zzz", OLD)), 1),
        ((("a", "aaa", OLD), ("b", "osm-mesh-config", NEW)), 1),
    ],
)
def test_oldest_mesh_config_of_the_usual_name_is_in_force(
    named: tuple[tuple[str, str, str], ...], counts: int
) -> None:
    """A new MeshConfig in a namespace that comes first by name does not replace it."""
    objects = _configs(*named)
    view = View.build(objects, MeshSettings())
    assert view.config.sidecar.log_level == str(counts)
    keys = [problem.key for problem in problems(view) if problem.code == Code.SEVERAL_CONFIGS.value]
    assert keys == [key for place, key in enumerate(objects) if place != counts]


def test_listener_of_two_workloads_stays_with_the_older_one() -> None:
    """In explicit interception, the younger workload of the namespace has no listener at the address."""
    first, second = (
        replace(
            a.workload(name, "10.0.0.1", app="shop"), interception=a.explicit("127.0.0.1"), created=created
        )
        for name, created in (("a", NEW), ("b", OLD))
    )
    view = a.view(a.service("shop"), first, second)
    assert (len(conflicts(view, first.key)), len(conflicts(view, second.key))) == (1, 0)
