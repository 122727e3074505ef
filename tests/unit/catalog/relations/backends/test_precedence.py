"""Who has what several claim: the healthy before the others, then age, and the name at the very last."""

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
from catalog.store.inventory import claimant_of
from catalog.store.view import MeshSettings, View
from meshwright.admin.pages.calls.access_line import question
from meshwright.mesh.config import MeshConfig, SidecarSettings
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import SidecarKey
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
    found = a.workload(name, "10.0.0.1", app="shop", account=account)
    return replace(found, health=health, created=created)


def _proxies(*pods: Workload, slices: tuple[EndpointSlice, ...] = ()) -> list[tuple[tuple[str, ...], Health]]:
    found = endpoints(a.view(a.service("shop"), *pods, *slices), SHOP, PORT)
    return [
        (tuple(str(proxy.uuid).removesuffix("-uuid") for proxy in each.proxies), each.health)
        for each in found
    ]


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
@pytest.mark.parametrize("health", [Health.UNREADY, Health.DRAINING])
def test_an_address_is_that_of_the_ready_pod(former: str, now: str, health: Health) -> None:
    """The object of a Pod that ends, or whose node is gone, may stay while its address is another Pod's."""
    pods = (_pod(former, health, OLD), _pod(now, Health.READY, NEW))
    told = EndpointSlice("shop", Namespace("default"), "shop-1", ("10.0.0.1",), (("", 8080),))
    assert _proxies(*pods) == _proxies(*pods, slices=(told,)) == [((now,), Health.READY)]


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
@pytest.mark.parametrize("health", list(Health))
def test_of_two_alike_an_address_is_that_of_the_younger(former: str, now: str, health: Health) -> None:
    """A network gives an address again once its former holder has ended."""
    assert _proxies(_pod(former, health, OLD), _pod(now, health, NEW)) == [((now,), health)]


def test_a_former_pod_does_not_make_it_unclear_who_is_at_an_address() -> None:
    """With another identity it would leave an endpoint of a slice without any."""
    view = a.view(_pod("a", Health.UNREADY, OLD, account="other"), _pod("b", Health.READY, NEW))
    there = sidecars_at(view, Namespace("default"), IpAddress("10.0.0.1"), PORT.port)
    assert [each.key.name for each in there] == ["b"]


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
def test_what_is_said_of_an_address_is_said_of_the_ready_pod(former: str, now: str) -> None:
    """By `explain` of that address, and of a line in the access log of the Pod that has it by now."""
    pods = [
        replace(a.workload(f"{name}-1", "10.0.0.1", app=name, account=name), health=health, created=created)
        for name, health, created in ((former, Health.UNREADY, OLD), (now, Health.READY, NEW))
    ]
    view = a.view(a.service(former), a.service(now), *pods)
    said = in_the_mesh(view, HostPort(IpAddress("10.0.0.1"), Port(8080)), a.identity("client"))
    assert said == f"this is the address of workload default/{now}-1: ask about a Service of this workload"
    line = {"start_time": NEW, "local_address": "10.0.0.1:8080", "caller": "spiffe://m/ns/default/sa/client"}
    asked = question(view, {"line": json.dumps(line)}, ())
    assert (asked.query["from"], asked.query["to"]) == ("default/client", f"default/{now}:80")


def test_another_namespace_takes_no_address() -> None:
    """What somebody claims in a namespace of his hides nobody in another one."""
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
def test_a_uuid_is_that_of_the_ready_workload_then_of_the_older(
    one: tuple[Health, str], other: tuple[Health, str], holder: str
) -> None:
    """Only its holder has a proxy; the name decides between those of one age."""
    uuid = ProxyUuid("u")
    pods = [
        replace(a.workload(name, address), uuid=uuid, health=health, created=created)
        for name, address, (health, created) in (("a", "10.0.0.1", one), ("b", "10.0.0.2", other))
    ]
    view = a.view(*pods)
    found = claimant_of(view, SidecarKey(Namespace("default"), uuid))
    assert found is not None
    assert found.key.name == holder
    assert [len(proxies) for proxies in groups(view).values()] == [1]


def _raw(name: str, created: str) -> Service:
    return replace(a.service(name, a.port(443, 8080, Protocol.TCP), app="shop"), created=created)


def _spoken_by(created: str, name: str, other: str) -> tuple[Protocol, Answer, Answer]:
    """Return what the port speaks, and what becomes of calls to the shop and to the other Service."""
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
def test_the_older_service_keeps_its_protocol(name: str) -> None:
    """Calls of the other one fail, and the oracle says so."""
    assert _spoken_by(OLD, name, NEW) == (Protocol.HTTP, Answer.ALLOWED, Answer.REFUSED)
    assert _spoken_by(NEW, name, OLD)[:2] == (Protocol.TCP, Answer.REFUSED)


def test_without_ages_the_name_decides_and_the_oracle_says_so() -> None:
    """As of files without creationTimestamp."""
    assert _spoken_by("", "front", "")[:2] == (Protocol.TCP, Answer.REFUSED)
    assert _spoken_by("", "zfront", "")[:2] == (Protocol.HTTP, Answer.ALLOWED)


def test_an_address_and_port_of_two_services_is_the_older_ones() -> None:
    """Their sidecars cannot tell the two apart."""
    both = [
        replace(a.service(name, address="10.96.0.1", app="shop"), created=created)
        for name, created in (("a", NEW), ("b", OLD))
    ]
    config = MeshConfig(permissive=True)
    view = a.view(config, *both, a.workload("shop-1", "10.0.0.1", app="shop"))
    assert [str(each.upstream) for each in open_to_all(view, None, False).services] == ["default/b"]


def _headless(namespace: str, created: str, health: Health) -> tuple[Service, Workload]:
    """Return a headless Service and its only Pod, both of a namespace."""
    service = replace(a.service("db", headless=True, namespace=namespace), created=created)
    pod = a.workload("db-0", "10.0.0.1", app="db", account="db", namespace=namespace)
    return service, replace(pod, health=health)


def _called_by_address(*things: object) -> tuple[list[str], list[str]]:
    """Return which Services are called at the Pods' address, and which are told that they are not."""
    view = a.view(MeshConfig(permissive=True), *things)
    offered = [str(each.upstream) for each in open_to_all(view, None, False).services]
    said = [str(each.key) for each in problems(view) if each.code == Code.SHARED_ADDRESS.value]
    return offered, said


@pytest.mark.parametrize(("former", "now"), [("a", "z"), ("z", "a")])
@pytest.mark.parametrize("health", [Health.UNREADY, Health.DRAINING])
def test_an_endpoint_of_a_headless_service_is_that_of_the_ready_pod(
    former: str, now: str, health: Health
) -> None:
    """A former Pod of an older Service in another namespace takes no calls from who has its address now."""
    things = (*_headless(former, OLD, health), *_headless(now, NEW, Health.READY))
    assert _called_by_address(*things) == ([f"{now}/db"], [f"Service {former}/db"])


@pytest.mark.parametrize("health", list(Health))
def test_of_equally_ready_ones_the_older_headless_service_has_an_endpoint(health: Health) -> None:
    """As with a Service that has an address; health moves nothing where nobody claims the same."""
    things = (*_headless("a", NEW, health), *_headless("z", OLD, health))
    assert _called_by_address(*things) == (["z/db"], ["Service a/db"])
    assert _called_by_address(*_headless("a", NEW, health)) == (["a/db"], [])


def test_a_service_that_publishes_pods_that_are_not_ready_keeps_them() -> None:
    """Its Pods are called before they are ready, so a younger Service takes none of them."""
    mine, pod = _headless("z", OLD, Health.UNREADY)
    things = (replace(mine, publish_not_ready=True), pod, *_headless("a", NEW, Health.READY))
    assert _called_by_address(*things) == (["z/db"], ["Service a/db"])


def test_a_virtual_address_stays_with_the_older_service() -> None:
    """Another one whose name has the same hash is moved, whatever its name."""
    network = IPv4Network("240.0.0.0/30")
    at_home = home(a.service_key("zz"), network)
    first = next(each for each in "abcdefgh" if home(a.service_key(each), network) == at_home)
    things = (replace(a.service(first), created=NEW), replace(a.service("zz"), created=OLD))
    view = a.view(*things, settings=MeshSettings(virtual_addresses=network))
    assert virtual_address(view, a.service_key("zz")) == at_home
    assert virtual_address(view, a.service_key(first)) != at_home


def _zoned(name: str, health: Health, zone: str) -> EndpointSlice:
    places = {each: ("10.0.0.1",) if each is health else () for each in Health}
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
def test_the_zone_of_an_address_is_that_of_the_ready_pod(former: str, now: str, health: Health) -> None:
    """Slices of a former Pod and of the one that has its address by now, in either order of their names."""
    slices = (
        _zoned(f"shop-{former}", health, f"zone-{former}"),
        _zoned(f"shop-{now}", Health.READY, f"zone-{now}"),
    )
    nearest = UpstreamPolicy(a.policy_key("near"), SHOP, nearest=LocalityPreference(LocalityScope.ZONE))
    view = a.view(a.service("shop"), _pod("x"), *slices, nearest)
    (found,) = endpoints(view, SHOP, PORT)
    assert found.locality == locality_of(view, _pod("x")) == f"/zone-{now}"


def _configs(*named: tuple[str, str, str]) -> dict[ObjectKey, SourcedObject]:
    """Return MeshConfigs: namespace, name and age; each has the log level of its place."""
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
def test_of_several_mesh_configs_the_oldest_of_the_name_counts(
    named: tuple[tuple[str, str, str], ...], counts: int
) -> None:
    """A new one in a namespace that comes first by name takes the mesh from nobody."""
    objects = _configs(*named)
    view = View.build(objects, MeshSettings())
    assert view.config.sidecar.log_level == str(counts)
    told = [each.key for each in problems(view) if each.code == Code.SEVERAL_CONFIGS.value]
    assert told == [key for place, key in enumerate(objects) if place != counts]


def test_a_listener_stays_with_the_older_workload() -> None:
    """In explicit interception, of one namespace; the younger one's is left out."""
    first, second = (
        replace(
            a.workload(name, "10.0.0.1", app="shop"), interception=a.explicit("127.0.0.1"), created=created
        )
        for name, created in (("a", NEW), ("b", OLD))
    )
    view = a.view(a.service("shop"), first, second)
    assert (len(conflicts(view, first.key)), len(conflicts(view, second.key))) == (1, 0)
