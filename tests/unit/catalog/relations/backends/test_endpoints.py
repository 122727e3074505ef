"""Tests of endpoints in a cluster: Pods and slices repeat each other; readiness affects only addresses."""

from dataclasses import replace

import pytest

from catalog.explain import explain
from catalog.oracle.decide import Answer, Request, decide
from catalog.policy.group_policy import proxy_policy
from catalog.policy.outbound import answering, called_at
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.readiness import taking_traffic
from catalog.relations.backends.workloads import backing, services_of
from catalog.relations.groups import members
from catalog.relations.hosts import hosts
from catalog.store.view import View
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.workload import Health, Workload
from tests.meshes import values as a

READY, DRAINING, UNREADY = Health.READY, Health.DRAINING, Health.UNREADY
KEY, PORT = a.service_key("shop"), a.port(80)
POLICY = (a.route_group("all", a.match("all")), a.target("t", "client", "shop", a.http("all")))
CLIENT = a.workload("client", "10.0.0.9")
ASK = Request(a.identity("client"), KEY, Port(80), "GET", "/")


def pod(name: str, address: str, health: Health = READY, *others: str) -> Workload:
    """Make a workload of the service with a health and other addresses."""
    workload = a.workload(name, address, app="shop", account="shop")
    return replace(workload, health=health, other_addresses=tuple(map(IpAddress, others)))


def sliced(
    *ready: str, name: str = "shop-1", draining: str = "", unready: str = "", zone: str = ""
) -> EndpointSlice:
    """Make a slice of the service at its target port; all its addresses are in one zone."""
    rest = tuple(draining.split()), tuple(unready.split())
    zones = tuple(sorted((item, zone) for item in (*ready, *rest[0], *rest[1]) if zone))
    return EndpointSlice("shop", Namespace("default"), name, ready, (("", 8080),), *rest, zones)


def healths(view: View) -> dict[str, Health]:
    """Return the health of the service's endpoints by address."""
    return {endpoint.address: endpoint.health for endpoint in endpoints(view, KEY, PORT)}


def given(view: View) -> list[str]:
    """Return the addresses of the endpoints in the client's policy."""
    (group,) = (key for key in members(view) if key.identity == a.identity("client"))
    return [
        at.address
        for service_destination in proxy_policy(view, group).service_destinations
        for at in service_destination.endpoints
    ]


def test_pod_and_its_slices_are_one_endpoint() -> None:
    """This holds for slices of the Pod's other family, and for several slices with the same address."""
    four, six = sliced("10.0.0.1"), sliced("fd00::1", name="shop-6")
    view = a.view(
        a.service("shop"),
        pod("shop-1", "10.0.0.1", READY, "fd00::1"),
        four,
        six,
        sliced("10.0.0.1", name="b"),
    )
    assert healths(view) == {"10.0.0.1": READY}
    (one,) = endpoints(view, KEY, PORT)
    assert one.identity == a.identity("shop")


def test_slice_with_another_address_of_a_pod_means_that_pod() -> None:
    """A Service without selector may know the Pod by that address only. It is called at its first address."""
    there = replace(pod("x", "10.0.0.1", READY, "fd00::1"), service=ServiceName("another"))
    view = a.view(a.service("shop", app=None), there, sliced("fd00::1"))
    assert healths(view) == {"10.0.0.1": READY}
    assert services_of(view, there.key) == (KEY,)


def test_service_without_selector_has_the_workloads_of_its_slices() -> None:
    """As in Kubernetes, slices decide which Pods are behind the Service.

    Only without any slice, Pods whose ServiceAccount has its name are.
    """
    by_account = replace(a.workload("shop-1", "10.0.0.1", primary="shop"), names_service=False)
    by_name = a.workload("shop-2", "10.0.0.2", primary="shop")
    service, elsewhere = a.service("shop", app=None), sliced("10.9.9.9")
    view = a.view(service, by_account, by_name, elsewhere)
    assert healths(view) == {"10.0.0.2": READY, "10.9.9.9": READY}
    assert [services_of(view, workload.key) for workload in (by_account, by_name)] == [(), (KEY,)]
    view = a.view(service, by_account, by_name, elsewhere, sliced("10.0.0.1", name="shop-2"))
    assert services_of(view, by_account.key) == (KEY,)
    view = a.view(service, by_account, by_name)
    assert healths(view) == {"10.0.0.1": READY, "10.0.0.2": READY}


@pytest.mark.parametrize(
    ("own", "slice_says", "expected"),
    [
        (READY, READY, READY),
        (READY, DRAINING, DRAINING),
        (READY, UNREADY, UNREADY),
        (DRAINING, READY, DRAINING),
        (UNREADY, READY, UNREADY),
        (UNREADY, DRAINING, UNREADY),
        (DRAINING, UNREADY, UNREADY),
    ],
)
def test_pod_has_the_worse_health_of_pod_and_slice(own: Health, slice_says: Health, expected: Health) -> None:
    """The API server reports the two one after the other, so either may be out of date."""
    by = {
        READY: sliced("10.0.0.1"),
        DRAINING: sliced(draining="10.0.0.1"),
        UNREADY: sliced(unready="10.0.0.1"),
    }
    assert healths(a.view(a.service("shop"), pod("shop-1", "10.0.0.1", own), by[slice_says])) == {
        "10.0.0.1": expected
    }


def test_address_in_several_slices_has_the_best_health() -> None:
    """Kubernetes moves endpoints between slices, and both slices have them in the meantime."""
    view = a.view(
        a.service("shop"), sliced("10.0.0.1"), sliced(name="b", unready="10.0.0.1", draining="10.0.0.2")
    )
    assert healths(view) == {"10.0.0.1": READY, "10.0.0.2": DRAINING}


def test_calls_go_to_ready_endpoints_else_to_draining_ones() -> None:
    """Endpoints that are not ready are never called."""
    pods = [pod("a", "10.0.0.1"), pod("b", "10.0.0.2", DRAINING), pod("c", "10.0.0.3", UNREADY)]
    view = a.view(a.service("shop"), CLIENT, *pods, *POLICY)
    assert [endpoint.address for endpoint in taking_traffic(view, KEY, PORT)] == given(view) == ["10.0.0.1"]
    last = a.view(a.service("shop"), CLIENT, *pods[1:], *POLICY)
    assert [endpoint.address for endpoint in taking_traffic(last, KEY, PORT)] == given(last) == ["10.0.0.2"]
    nobody = a.view(a.service("shop"), CLIENT, pods[2], *POLICY)
    assert taking_traffic(nobody, KEY, PORT) == () and given(nobody) == []  # noqa: PT018 - the same, twice


def test_readiness_changes_only_endpoint_addresses() -> None:
    """Routes and identities stay the same, so only endpoints are sent. The oracle's answer follows."""
    ready = a.view(a.service("shop"), CLIENT, pod("a", "10.0.0.1"), *POLICY)
    unready = a.view(a.service("shop"), CLIENT, pod("a", "10.0.0.1", UNREADY), *POLICY)
    policies = []
    for view in (ready, unready):
        (group,) = (key for key in members(view) if key.identity == a.identity("client"))
        made = proxy_policy(view, group)
        policies.append(
            (
                made.outbound,
                [
                    replace(service_destination, endpoints=())
                    for service_destination in made.service_destinations
                ],
            )
        )
    assert policies[0] == policies[1]
    assert answering(unready, a.identity("client"), KEY, PORT) == (a.identity("shop"),)
    assert decide(ready, ASK).answer is Answer.ALLOWED
    assert decide(unready, ASK).answer is Answer.UNREACHABLE


def test_explanation_names_endpoints_that_are_not_ready() -> None:
    """No policy would change the answer, so no manifests are missing."""
    unready = a.view(a.service("shop"), CLIENT, pod("a", "10.0.0.1", UNREADY), *POLICY)
    explanation = explain(unready, ASK)
    assert (explanation.missing, explanation.besides) == (
        (),
        ("no workload of Service default/shop is ready",),
    )
    lines = [step.text for step in explanation.steps if "10.0.0.1" in step.text]
    assert lines == ["10.0.0.1:8080 (a-uuid.shop.default) is not ready."]


def test_service_may_publish_endpoints_that_are_not_ready() -> None:
    """The slice counts and not the Pod's own health, so that peers of a StatefulSet find each other."""
    service = replace(a.service("shop"), publish_not_ready=True)
    view = a.view(service, pod("a", "10.0.0.1", UNREADY), sliced("10.0.0.1"))
    assert healths(view) == {"10.0.0.1": READY}


def test_zone_of_a_slice_is_the_locality_of_an_endpoint_without_one() -> None:
    """A locality of the workload itself takes precedence."""
    named = replace(pod("b", "10.0.0.2"), locality="eu/b/c")
    view = a.view(
        a.service("shop"), pod("a", "10.0.0.1"), named, sliced("10.0.0.1", "10.0.0.2", "10.0.0.3", zone="z")
    )
    assert [endpoint.locality for endpoint in endpoints(view, KEY, PORT)] == ["/z", "eu/b/c", "/z"]


def test_pod_in_the_host_network_does_not_match_slices_of_its_neighbour() -> None:
    """Two Pods in the network of one node share its address.

    A slice of one Pod is not taken for the other.
    """
    one = replace(a.workload("one", "10.0.0.1", app="shop", sidecar=False), shares_address=True)
    other = replace(a.workload("other", "10.0.0.1", app="other", sidecar=False), shares_address=True)
    view = a.view(a.service("shop"), one, other, sliced("10.0.0.1"))
    assert [workload.key.name for workload in backing(view, KEY)] == ["one"]
    assert services_of(view, other.key) == ()
    assert [(endpoint.address, endpoint.identity) for endpoint in endpoints(view, KEY, PORT)] == [
        ("10.0.0.1", None)
    ]


def test_service_is_called_at_its_addresses_of_both_families() -> None:
    """Its names resolve to both addresses."""
    service = replace(a.service("shop", address="10.96.0.1"), other_addresses=(IpAddress("fd00:96::1"),))
    view = a.view(service, CLIENT, pod("a", "10.0.0.1"), *POLICY)
    places = called_at(view, a.identity("client"), KEY, PORT)
    assert [place.address for place in places] == ["10.96.0.1", "fd00:96::1"]
    assert [address for address, _ in hosts(view, Namespace("default"))] == ["10.96.0.1", "fd00:96::1"]


def test_names_of_a_headless_service_resolve_to_ready_endpoints() -> None:
    """The DNS of Kubernetes does the same."""
    view = a.view(a.service("shop", headless=True), pod("a", "10.0.0.1"), pod("b", "10.0.0.2", UNREADY))
    assert [address for address, _ in hosts(view, Namespace("default"))] == ["10.0.0.1"]


def test_same_account_name_in_two_namespaces_is_two_identities() -> None:
    """A target for one of the identities admits no calls to the other."""
    there = replace(
        a.workload("shop-1", "10.1.0.1", app="shop", account="shop", namespace="other"),
    )
    view = a.view(
        a.service("shop"), a.service("shop", namespace="other"), CLIENT, pod("a", "10.0.0.1"), there, *POLICY
    )
    other = replace(ASK, service=a.service_key("shop", "other"))
    assert decide(view, ASK).answer is Answer.ALLOWED
    assert decide(view, other).answer is not Answer.ALLOWED
    assert given(view) == ["10.0.0.1"]
