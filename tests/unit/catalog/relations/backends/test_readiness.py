"""Tests of endpoint admission: it affects only addresses, and explanations name what is pending."""

from dataclasses import replace

import pytest

from catalog.explain import explain
from catalog.explain.remedy import remedy
from catalog.oracle.decide import Answer, Request, decide
from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.relations.backends.readiness import is_admitted
from catalog.relations.groups import members
from catalog.store.edits import Edits
from catalog.store.settings import Admission, EndpointAdmission
from catalog.store.view import MeshSettings, View
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, Port, ProxyUuid, ServiceName
from meshwright.mesh.objects import EndpointSlice
from tests.meshes import values as a
from tests.tools.observed_values import Pin

READY = MeshSettings(endpoint_admission=EndpointAdmission.READY)
POLICY = (
    a.route_group("all", a.match("all")),
    a.target("t", "client", "shop", a.http("all")),
    a.target("u", "client", "spare", a.http("all")),
)
MESH = (
    a.service("shop"),
    a.service("spare"),
    a.workload("shop-1", "10.0.0.1", app="shop", account="shop"),
    a.workload("shop-2", "10.0.0.2", app="shop", account="shop"),
    a.workload("spare-1", "10.0.0.3", app="spare", account="spare"),
    a.workload("client", "10.0.0.9"),
    *POLICY,
)
NOBODY_YET = "no workload of Service default/shop is admitted yet"
ASK = Request(a.identity("client"), a.service_key("shop"), Port(80), "GET", "/")


def name(workload_name: str, primary: str = "shop") -> ProxyName:
    """Return the name of a workload's proxy."""
    return ProxyName(ProxyUuid(f"{workload_name}-uuid"), ServiceName(primary), Namespace("default"))


def admit(mesh: View, *names: ProxyName) -> View:
    """Admit proxies."""
    mesh.apply(Edits(admissions=dict.fromkeys(names, Admission.ADMITTED)))
    return mesh


def policy_of(mesh: View, client: str = "client") -> ProxyPolicy:
    """Return the policy of a workload's proxy."""
    (group,) = (key for key in members(mesh) if key.identity == a.identity(client))
    return proxy_policy(mesh, group)


def addresses(mesh: View) -> dict[str, list[str]]:
    """Return the addresses in the policy of the client's proxy, by service."""
    return {
        service_destination.service.name: [at.address for at in service_destination.endpoints]
        for service_destination in policy_of(mesh).service_destinations
    }


def test_admission_changes_only_endpoint_addresses() -> None:
    """Routes, clusters, expected identities and the server's rules are complete before any admission."""
    mesh = a.view(*MESH, settings=READY)
    first, server = policy_of(mesh), policy_of(mesh, "shop")
    assert addresses(mesh) == {"shop": [], "spare": []}
    admit(mesh, name("shop-2"))
    assert addresses(mesh) == {"shop": ["10.0.0.2"], "spare": []}
    admit(mesh, name("shop-1"), name("spare-1", "spare"))
    last = policy_of(mesh)
    bare = tuple(
        replace(service_destination, endpoints=()) for service_destination in last.service_destinations
    )
    assert replace(last, reachable=(ReachableServices.from_sorted(last.outbound, bare),)) == first
    assert policy_of(mesh, "shop") == server
    assert last == policy_of(a.view(*MESH))  # mode OFF admits every endpoint


def test_endpoint_without_admission_disappears_and_its_service_stays() -> None:
    """A mode that admits all endpoints brings the addresses back."""
    mesh = admit(a.view(*MESH, settings=READY), name("shop-1"))
    mesh.apply(Edits(admissions={name("shop-1"): None}))
    assert addresses(mesh) == {"shop": [], "spare": []}
    mesh.apply(Edits(settings=MeshSettings()))
    assert addresses(mesh)["shop"] == ["10.0.0.1", "10.0.0.2"]


def test_admission_computes_only_policies_with_the_endpoint() -> None:
    """Admitting a proxy computes nothing for clients of other services, and one destination for its own."""
    other = (a.workload("other", "10.0.0.8"), a.target("v", "other", "spare", a.http("all")))
    mesh = a.view(*MESH, *other, settings=READY)
    pins = {key.identity.service_account: Pin(proxy_policy, mesh, key) for key in members(mesh)}
    for pin in pins.values():
        pin.value()
    before = mesh.graph.computed
    admit(mesh, name("shop-1"))
    touched = [account for account, pin in pins.items() if pin.node.stale]
    for pin in pins.values():
        pin.value()
    assert touched == ["client"]
    # taking_traffic, endpoints_of, proxy_policy
    assert mesh.graph.computed - before == 3


def test_address_in_a_slice_waits_for_its_sidecar() -> None:
    """The address is admitted with the workload there. An address without a sidecar is never admitted."""
    sliced = EndpointSlice("plain", Namespace("default"), "s", ("10.0.0.1", "10.9.9.9"), (("", 8080),))
    mesh = a.view(*MESH, a.service("plain", app=None), sliced, settings=READY)
    assert addresses(mesh) == {"plain": [], "shop": [], "spare": []}
    admit(mesh, name("shop-1"))
    assert addresses(mesh)["plain"] == ["10.0.0.1"]


def test_admission_of_another_proxy_name_has_no_effect() -> None:
    """The whole common name counts: a workload with another primary service has another proxy."""
    mesh = admit(a.view(*MESH, settings=READY), name("shop-1", "spare"))
    assert addresses(mesh)["shop"] == []
    assert is_admitted(mesh, name("shop-1", "spare"))
    assert not is_admitted(mesh, name("shop-1"))


def test_headless_service_is_offered_without_admission() -> None:
    """The client chooses the endpoint by its address, so the listener has all addresses."""
    headless = a.service("nodes", a.port(80), app="shop", headless=True)
    before, after = (
        a.view(*MESH, headless, settings=mesh_settings) for mesh_settings in (READY, MeshSettings())
    )
    (waiting,) = (
        outbound_service
        for outbound_service in policy_of(before).outbound
        if outbound_service.upstream.name == "nodes"
    )
    (ready,) = (
        outbound_service
        for outbound_service in policy_of(after).outbound
        if outbound_service.upstream.name == "nodes"
    )
    assert waiting == ready
    assert waiting.addresses == ("10.0.0.1", "10.0.0.2")


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (EndpointAdmission.READY, "its sidecar has not accepted its inbound listeners"),
        (EndpointAdmission.IDENTITY, "its sidecar has not connected with its certificate"),
    ],
)
def test_explanation_names_endpoints_that_are_not_admitted_yet(mode: EndpointAdmission, reason: str) -> None:
    """Until a workload is admitted, the call is unreachable and no policy would help; then it is allowed."""
    mesh = a.view(*MESH, settings=MeshSettings(endpoint_admission=mode))
    explanation = explain(mesh, ASK)
    assert explanation.decision.answer is Answer.UNREACHABLE
    assert (explanation.missing, explanation.besides) == ((), (NOBODY_YET,))
    lines = [step.text for step in explanation.steps if "is not admitted yet" in step.text]
    assert lines == [
        f"10.0.0.{n}:8080 (shop-{n}-uuid.shop.default) is not admitted yet: {reason}." for n in (1, 2)
    ]
    assert explanation.steps[-1].text == (
        "The Service is unreachable: the workloads that could answer are not ready, and the client's "
        f"sidecar answers 503. The cause is not a missing policy: {NOBODY_YET}."
    )
    admit(mesh, name("shop-1"))
    assert decide(mesh, ASK).answer is Answer.ALLOWED


def test_missing_policy_is_reported_together_with_missing_admission() -> None:
    """Neither the manifests nor the admission alone allow the call, so the explanation names both."""
    mesh = a.view(*(item for item in MESH if item not in POLICY), settings=READY)
    explanation = explain(mesh, ASK)
    assert [item["kind"] for item in explanation.missing] == ["HTTPRouteGroup", "TrafficTarget"]
    assert explanation.besides == (NOBODY_YET,)
    assert explanation.steps[-1].text.endswith(f" A policy is missing, and this is not all: {NOBODY_YET}.")
    admit(mesh, name("shop-1"))
    now = explain(mesh, ASK)
    assert (now.missing, now.besides) == (explanation.missing, ())
    assert decide(mesh, ASK).answer is Answer.UNREACHABLE
    with_policy = a.view(*MESH, settings=READY)
    assert decide(with_policy, ASK).answer is Answer.UNREACHABLE
    assert decide(admit(with_policy, name("shop-1")), ASK).answer is Answer.ALLOWED


def test_call_of_a_headless_endpoint_needs_no_admission() -> None:
    """A split of the headless service, or an explicit upstream, still waits for an admitted endpoint."""
    nodes = a.service("nodes", a.port(80), app="shop", headless=True)
    ask = replace(ASK, service=a.service_key("nodes"))
    assert explain(a.view(*MESH, nodes, settings=READY), ask).steps[-1].text == "The request is allowed."
    elsewhere = a.split("s", "nodes", ("spare", 1))
    assert decide(a.view(*MESH, nodes, elsewhere, settings=READY), ask).answer is Answer.UNREACHABLE
    agent = a.workload(
        "agent", "10.0.0.8", account="client", interception=a.explicit(None, ("nodes", 80, "127.0.0.1", 1))
    )
    assert decide(a.view(*MESH, nodes, agent, settings=READY), ask).answer is Answer.UNREACHABLE


def test_share_without_admitted_endpoints_fails() -> None:
    """Some calls of the apex pass and some fail, and no policy is missing."""
    both = a.split("s", "shop", ("shop", 1), ("spare", 1))
    mesh = admit(a.view(*MESH, both, settings=READY), name("shop-1"))
    assert decide(mesh, ASK).answer is Answer.DEPENDS
    assert remedy(mesh, ASK) == ()
    admit(mesh, name("spare-1", "spare"))
    assert decide(mesh, ASK).answer is Answer.ALLOWED
