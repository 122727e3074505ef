"""Tests of random histories: served resources equal, byte for byte, those computed from scratch."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.lint.codes import Code
from catalog.lint.problems import Linter
from catalog.lint.problems import problems as found_from_nothing
from catalog.policy.inbound import inbound_ports
from catalog.policy.objects.limits import connection_limits
from catalog.policy.objects.telemetry import logging
from catalog.policy.outbound import visible
from catalog.policy.reachable import reachable
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.proxy import ReachableServices
from catalog.policy.values.route_actions import Forward
from catalog.policy.values.terms import AccessLogPolicy
from catalog.relations.backend_tls.decision import authorities_of, deciding_policy
from catalog.relations.backend_tls.states import gateways_calling
from catalog.relations.gateways.client_traffic import client_traffic
from catalog.relations.gateways.grants import is_granted
from catalog.relations.gateways.listener_sets import allowed_sets
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.route_listeners import routes_at_listener
from catalog.relations.groups import groups
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.delivery.problems import AllProblems
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.engine.derived import derived
from meshwright.engine.graph import Graph
from meshwright.engine.node import Derivation
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.gateway.rules import Rule as GatewayRule
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE, SERVICE
from meshwright.mesh.names import Namespace, SecretName, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.authorization import Authorizer, ExternalAuthorization
from meshwright.mesh.policies.client_traffic import ClientTarget
from meshwright.mesh.policies.limits import ConnectionLimits, UpstreamTrafficSetting
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.retries import Retries, Retry, RetryCondition
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.routing import RouteActions, RoutePolicy, RouteRule
from meshwright.mesh.policies.telemetry import AccessLog, ExtensionService, LogExport, LogFilter, Telemetry
from meshwright.mesh.policies.upstreams import (
    BalancingAlgorithm,
    HashKey,
    KeyKind,
    LoadBalancing,
    UpstreamPolicy,
)
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import TapChoice
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.meshes.random_meshes import Mesh, random_mesh
from tests.tools.hypothesis_profiles import examples
from tests.tools.observed_values import Pin
from tests.unit.conftest import MANY_SECONDS
from tests.unit.delivery.histories import Replica, mismatch
from tests.unit.delivery.unrecorded_reads import STEPS, forgetful, names
from xds.protocol.resources.resource import TYPES

pytestmark = pytest.mark.timeout(MANY_SECONDS)  # many histories each


@settings(max_examples=examples(5, fresh=100), deadline=None)
@given(st.integers(0, 2**32))
def test_incremental_output_equals_output_from_scratch(seed: int) -> None:
    """Snapshots and problems stay right after changes of objects, endpoints, certificates and settings."""
    assert mismatch(seed) is None


@settings(max_examples=examples(4, fresh=40), deadline=None)
@given(st.integers(0, 2**32))
def test_replicas_with_the_same_objects_serve_identical_versions(seed: int) -> None:
    """Two replicas that get the objects in different orders and waves agree on every version."""
    dice = random.Random(seed)  # noqa: S311 - dice
    mesh = random_mesh(dice)
    one, other = Replica(mesh), Replica(Mesh())
    one.wave()
    other.mesh.settings, other.mesh.roots = mesh.settings, mesh.roots
    for name in ("certificates", "objects", "workloads", "slices", "admissions"):
        entries = list(getattr(mesh, name).items())
        dice.shuffle(entries)
        for key, value in entries:
            getattr(other.mesh, name)[key] = value
            if dice.random() < 0.2:
                other.wave()
    other.wave()
    assert _versions(one) == _versions(other)


def _versions(replica: Replica) -> dict[str, list[str]]:
    published = replica.published
    served = {
        node: published.snapshot(node)
        for node, group in published.members.items()
        if not group.startswith("kept:")
    }
    return {
        node: [snapshot.version(type_url) for type_url in TYPES]
        for node, snapshot in sorted(served.items())
        if snapshot is not None
    }


KILLED_BY = {
    "Egresses": (5, 8),
    "Egresses by source": (7, 4),
    "Gateway API routes": (1, 7),
    "Gateway API routes by namespace": (110, 3),
    "Gateway API routes by parent": (1, 5),
    "HTTPRouteGroups": (2, 7),
    "IngressBackends": (25, 7),
    "IngressBackends by service": (46, 8),
    "MeshConfigs": (37, 5),
    "TCPRoutes": (3, 5),
    "TrafficSplits": (93, 4),
    "TrafficSplits by apex": (11, 9),
    "TrafficTargets": (18, 8),
    "TrafficTargets by both ends": (48, 4),
    "TrafficTargets by destination": (17, 11),
    "TrafficTargets by source": (48, 4),
    "admissions": (398, 3),
    "certificates": (0, 10),
    "claims by place": (4, 5),
    "namespaces": (9, 2),
    "objects": (3, 2),
    "pod templates": (3, 8),
    "pod templates by ServiceAccount": (172, 2),
    "pod templates by identity": (3, 7),
    "pod templates by label": (15, 3),
    "services": (0, 4),
    "services by called address": (71, 6),
    "services by label": (42, 4),
    "services by name": (44, 10),
    "services by namespace": (63, 6),
    "services by own address": (59, 9),
    "services by port": (7, 2),
    "settings": (9, 3),
    "slices by address": (25, 8),
    "slices by service": (29, 5),
    "trust bundle": (39, 8),
    "workloads": (5, 9),
    "workloads by address": (77, 1),
    "workloads by label": (17, 6),
    "workloads by primary": (14, 6),
}
"""The history that finds what is wrong without the reads of a table or index, and the step that shows it.

Search again with unrecorded_reads.py when the generator changes. Slices are their own keys, so their values
never change; no derived value reads the other absent tables and indexes.
"""

NOT_READ = {"slices", "workloads by gateway", "workloads by group"}
ONE_BY_ONE = {"TrafficSplits by backend", "workloads by identity"}
"""Those that histories seldom need, for what reads them reads much else; see the test of `visible`."""
BEHIND = {"services by backend of their routes"}
"""Those that a parent needs which is visible by a backend alone; see its test."""
CLAIMED = {"workloads by sidecar"}
"""Those that no history needs: in these no two workloads of a namespace have one UUID. See its test."""


LINTED = {
    "TrafficTargets by number of sources": ", the set of entries",
    "workloads by ServiceAccount": "",
}
"""Those that problems alone need, and histories too seldom, and what is read of them; see their test."""
MESHED = {"sidecars by namespace"}
"""Those that problems alone need of Services which nobody is behind; see its test."""
SUGGESTED = {"pod templates by namespace", "workloads by namespace"}
"""Those that a suggestion needs, in place of a name that nobody has; see its test."""
LIMITED = {"UpstreamTrafficSettings", "UpstreamTrafficSettings by host"}
NAMED = {"Egresses by UpstreamTrafficSetting"}
"""Those that problems alone need of settings for hosts outside; see its test."""
RETRIED = {"Retries", "Retries by source"}
PLAIN = {"MutualTLSes", "MutualTLSes by namespace"}
WATCHED = {"taps"}
ASKED = {"ExternalAuthorizations", "ExternalAuthorizations by namespace"}
ROUTED = {"RoutePolicies", "RoutePolicies by service"}
ROOTS = {"MeshRootCertificates": ", the set of keys"}
TOLD = {"Telemetries", "Telemetries by namespace", "ExtensionServices"}
REACHED = {"UpstreamPolicies", "UpstreamPolicies by service"}
SERVED = {"GatewayClasses", "Gateways", "Gateway API routes by gateway"}
SETS = {"ListenerSets", "ListenerSets by gateway"}
OF_SETS = {"Gateway API routes by ListenerSet"}
OF_CLIENTS = {"ClientTrafficPolicies", "ClientTrafficPolicies by gateway"}
SHOWN = {"Secrets with certificates"}
SECURED = {"BackendTLSPolicies", "BackendTLSPolicies by Service"}
AUTHORITIES = {"ConfigMaps with CA certificates"}
CALLING = {"Gateway API routes by backend"}
GRANTED = {"ReferenceGrants", "ReferenceGrants by namespace"}
"""Those of limits, of what is tried again or becomes of requests, of how endpoints are reached, of roots."""


CONTROLLED = frozenset(sorted(KILLED_BY)[::8])
"""Those with a negative control in every run; `make fuzz` controls all of them."""


def test_every_table_and_index_has_a_mutation_test() -> None:
    """A new table or index fails here until a test shows that its recorded reads matter."""
    others = (
        NOT_READ
        | ONE_BY_ONE
        | BEHIND
        | CLAIMED
        | LINTED.keys()
        | MESHED
        | SUGGESTED
        | LIMITED
        | NAMED
        | RETRIED
        | ROUTED
        | REACHED
        | TOLD
        | ROOTS.keys()
        | PLAIN
        | ASKED
        | WATCHED
        | SERVED
        | SETS
        | OF_CLIENTS
        | OF_SETS
        | SHOWN
        | SECURED
        | AUTHORITIES
        | CALLING
        | GRANTED
    )
    assert names() == KILLED_BY.keys() | others


@pytest.mark.fuzzed
@pytest.mark.parametrize("name", sorted(KILLED_BY)[:: examples(2, fresh=1)])
def test_forgotten_reads_of_a_table_or_index_are_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the recorded reads of one table or index, served resources differ after a step of a history.

    Every run has every second table or index, and `make fuzz` all of them.

    Negative control: with them, nothing differs after the same step of the same history. In every run some of
    them have it, because `test_incremental_output_equals_output_from_scratch` claims the same.
    """
    seed, step = KILLED_BY[name]
    with monkeypatch.context() as patch:
        patch.setattr(Graph, "_link", forgetful(name))
        assert mismatch(seed, step, first=step) is not None
    if examples(1, fresh=8) > 1 or name in CONTROLLED:
        assert mismatch(seed, step, first=step) is None


@pytest.mark.parametrize("forgotten", ["", *sorted(ONE_BY_ONE)])
def test_visible_services_follow_splits_and_identities(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workload of a visible identity, or a split with a visible backend, makes a service visible.

    If the reads of one index are forgotten, the change is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    before = (a.service("a"), a.service("b"), a.service("c"), a.workload("a", "10.0.0.1"))
    policy = (a.route_group("r", a.match("m")), a.target("t", "client", "a", a.http("r")))
    new = a.workload("b", "10.0.0.2", account="a"), a.split("s", "c", ("a", 1))
    seen = []
    for item in new:
        view = a.view(*before, *policy)
        pin = Pin(visible, view, a.identity("client"))
        assert [key.name for key in pin.value()] == ["a"]
        view.apply(view.edits_to(a.view(*before, *policy, item).known()))
        seen.append([key.name for key in pin.value()])
    assert (seen == [["a", "b"], ["a", "c"]]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(BEHIND)])
def test_visible_services_follow_backends_of_routes(forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A route with a visible backend makes its parent visible, unless reads of the index are forgotten."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    before = (a.service("a"), a.service("c"), a.workload("a", "10.0.0.1"))
    policy = (a.route_group("r", a.match("m")), a.target("t", "client", "a", a.http("r")))
    route = g.http_route("s", GatewayRule(backends=(g.to("a"),)), parents=(g.parent("c"),))
    view = g.view(*before, *policy)
    pin = Pin(visible, view, a.identity("client"))
    assert [key.name for key in pin.value()] == ["a"]
    view.apply(view.edits_to(g.view(*before, *policy, route).known()))
    assert ([key.name for key in pin.value()] == ["a", "c"]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(SERVED)])
def test_routes_at_listeners_follow_classes_gateways_and_routes(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class, a gateway and a route are added one after another; the route is attached with the last.

    If the reads of one table or index are forgotten, the attachment is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    gateway, route = g.gateway("edge"), g.http_route("r", parents=(g.at("edge"),))
    orders = ((g.CLASS, gateway, route), (gateway, route, g.CLASS), (route, g.CLASS, gateway))
    result = []
    for things in orders:
        view = g.view()
        pin = Pin(_attached, view, "here")
        seen = [pin.value()]
        for count in (1, 2, 3):
            view.apply(view.edits_to(g.view(*things[:count]).known()))
            seen.append(pin.value())
        result.append(seen)
    assert (result == [[0, 0, 0, 1]] * 3) is (not forgotten)


@derived
def _attached(view: View, _: str) -> int:
    return len(routes_at_listener(view, g.gateway("edge").key, "http"))


@pytest.mark.parametrize("forgotten", ["", *sorted(SETS)])
def test_allowed_sets_of_a_gateway_follow_added_and_edited_sets(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set is added, gets an age, and names another gateway; each step changes the sets of the gateway."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    around = (g.CLASS, g.open_gateway("edge"))
    view = g.view(*around)
    pin = Pin(allowed_sets, view, g.gateway("edge").key)
    seen = [[found.created for found in pin.value()]]
    for sets in (
        (g.listener_set("set"),),
        (g.listener_set("set", created="2026-11-30T08:00:00Z"),),
        (g.listener_set("set", gateway="other"),),
    ):
        view.apply(view.edits_to(g.view(*around, *sets).known()))
        seen.append([found.created for found in pin.value()])
    assert (seen == [[], [""], ["2026-11-30T08:00:00Z"], []]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(OF_CLIENTS)])
def test_settings_of_a_port_follow_client_traffic_policies(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy is added, edited, overruled by an older one, and names another gateway."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    around = (g.CLASS, g.gateway("edge"))
    view = g.view(*around)
    pin = Pin(client_traffic, view, g.gateway("edge").key)
    seen: list[list[int | None]] = []
    young, old = (g.client_policy(name, connections=number) for name, number in (("y", 1), ("o", 3)))
    for policies in (
        (),
        (young,),
        (replace(young, settings=replace(young.settings, connections=2)),),
        (young, old),
        (young, replace(old, targets=(ClientTarget("other"),))),
    ):
        view.apply(view.edits_to(g.view(*around, *policies).known()))
        found = [traffic.port for traffic in pin.value().values()]
        seen.append([policy.settings.connections for policy in found if policy is not None])
    assert (seen == [[], [1], [2], [3], [1]]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(OF_SETS)])
def test_routes_at_a_set_follow_added_and_removed_routes(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener of the set has the route while it is there, unless reads are forgotten."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    around = (g.CLASS, g.open_gateway("edge", g.listener(port=81)), g.listener_set("set"))
    route = g.http_route("r", parents=(g.at_set("set"),))
    view = g.view(*around)
    pin = Pin(_attached_to_set, view, "here")
    seen = [pin.value()]
    for routes in ((route,), ()):
        view.apply(view.edits_to(g.view(*around, *routes).known()))
        seen.append(pin.value())
    assert (seen == [0, 1, 0]) is (not forgotten)


@derived
def _attached_to_set(view: View, _: str) -> int:
    return len(routes_at_listener(view, g.gateway("edge").key, "http", g.listener_set("set").key))


@pytest.mark.parametrize("forgotten", ["", *sorted(SECURED)])
def test_deciding_policy_follows_added_and_edited_policies(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy is added, changes its server name, and gets another target; each step changes the TLS."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    service = a.service("web")
    view = g.view(service)
    pin = Pin(deciding_policy, view, service.key, service.ports[0])
    seen = [found and found.hostname for found in [pin.value()]]
    policy = g.backend_policy()
    for policies in (
        (policy,),
        (replace(policy, hostname="b.example"),),
        (g.backend_policy("tls", "other"),),
    ):
        view.apply(view.edits_to(g.view(service, *policies).known()))
        seen += [found and found.hostname for found in [pin.value()]]
    assert (seen == [None, "web.example", "b.example", None]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(AUTHORITIES)])
def test_authorities_of_a_policy_follow_added_and_removed_config_maps(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy has CA certificates while its ConfigMap is there, unless reads are forgotten."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    policy = g.backend_policy()
    view = g.view(policy)
    pin = Pin(authorities_of, view, policy.key)
    seen = [pin.value().pem]
    for bundles in ((g.ca_bundle(),), ()):
        view.apply(view.edits_to(g.view(policy, *bundles).known()))
        seen.append(pin.value().pem)
    assert (seen == ["", "[ca]", ""]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(CALLING)])
def test_gateways_of_a_service_follow_added_and_removed_routes(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway calls the Service while it has a route there, unless reads are forgotten."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    around, service = (g.CLASS, g.gateway("edge")), a.service("web")
    route = g.http_route("r", Rule(backends=(g.to("web"),)), parents=(g.at("edge"),))
    view = g.view(*around, service)
    pin = Pin(gateways_calling, view, service.key)
    seen = [len(pin.value())]
    for routes in ((route,), ()):
        view.apply(view.edits_to(g.view(*around, service, *routes).known()))
        seen.append(len(pin.value()))
    assert (seen == [0, 1, 0]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(SHOWN)])
def test_certificates_of_listeners_follow_added_and_removed_secrets(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener has a certificate while its Secret is there, unless reads are forgotten."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    around = (g.CLASS, g.gateway("edge", g.https()))
    view = g.view(*around)
    pin = Pin(_certified, view, "here")
    seen = [pin.value()]
    for secrets in ((g.tls_secret(),), ()):
        view.apply(view.edits_to(g.view(*around, *secrets).known()))
        seen.append(pin.value())
    assert (seen == [0, 1, 0]) is (not forgotten)


@derived
def _certified(view: View, _: str) -> int:
    (verdict,) = listener_verdicts(view, g.gateway("edge").key)
    return len(verdict.certificates)


@pytest.mark.parametrize("forgotten", ["", *sorted(GRANTED)])
def test_permitted_references_follow_added_and_edited_grants(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grant for another kind is added, then edited, then removed."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    key, targets = a.policy_key("g"), (GrantedTo(SERVICE),)
    other, right = (
        ReferenceGrant(key, (GrantedFrom(kind, Namespace("far")),), targets)
        for kind in (GRPC_ROUTE, HTTP_ROUTE)
    )
    view = g.view()
    pin = Pin(_permitted, view, "here")
    seen = [pin.value()]
    for grants in ((other,), (right,), ()):
        view.apply(view.edits_to(g.view(*grants).known()))
        seen.append(pin.value())
    assert (seen == [False, False, True, False]) is (not forgotten)


@derived
def _permitted(view: View, _: str) -> bool:
    return is_granted(view, HTTP_ROUTE, Namespace("far"), ObjectKey(SERVICE, a.DEFAULT, "shop"))


@pytest.mark.parametrize("forgotten", ["", *sorted(LIMITED)])
def test_connection_limits_follow_added_and_edited_settings(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An added and an edited UpstreamTrafficSetting change the limits, unless reads are forgotten."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    service = a.service("shop")
    view = a.view(service)
    pin = Pin(connection_limits, view, service.key)
    seen = [pin.value().connections]
    for limit in (1, 2):
        setting = UpstreamTrafficSetting(a.policy_key("s"), "shop.default", ConnectionLimits(limit))
        view.apply(view.edits_to(a.view(service, setting).known()))
        seen.append(pin.value().connections)
    assert (seen == [None, 1, 2]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(NAMED)])
def test_unknown_host_problem_disappears_once_an_egress_names_the_host(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting for an external host has no effect until an Egress names the host and the setting.

    If the reads of the index are forgotten, the problem remains.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    setting = UpstreamTrafficSetting(a.policy_key("s"), "x.test", ConnectionLimits(1))
    view = a.view(setting)
    linter, problems = Linter(view), AllProblems()
    problems.report_lint(linter.looks())
    before = [problem.code for problem in problems.all()]
    egress = a.egress("e", "buyer", (80, "http"), hosts=("x.test",), limits="s")
    view.apply(view.edits_to(a.view(setting, egress).known()))
    problems.report_lint(linter.looks())
    after = [problem.code for problem in problems.all()]
    assert before == [Code.UNKNOWN_HOST.value]
    assert (Code.UNKNOWN_HOST.value not in after) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(TOLD)])
def test_access_logs_follow_telemetries_and_their_collector(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Telemetry is added, then edited, then its collector is added; the access log follows each step.

    If the reads of one table are forgotten, a step is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    things: tuple[object, ...] = (a.service("shop"), a.workload("shop", "10.0.0.1"))
    collector = ExtensionService(a.policy_key("c"), HostPort("collector", 4317))
    view = a.view(*things)
    pin = Pin(_logging, view, "here")
    seen = [pin.value()]
    for more in ((0.0,), (1.0,), (1.0, collector)):
        log = AccessLog(export=LogExport(collector.key), filter=LogFilter(percent=more[0]))
        result = (Telemetry(a.policy_key("t"), access_log=log), *more[1:])
        view.apply(view.edits_to(a.view(*things, *result).known()))
        seen.append(pin.value())
    messages = [
        (access_log_policy.log.filter.percent, access_log_policy.collector is not None)
        for access_log_policy in seen
    ]
    assert (messages == [(100.0, False), (0.0, False), (1.0, False), (1.0, True)]) is (not forgotten)


@derived
def _logging(view: View, _: str) -> AccessLogPolicy:
    (group,) = groups(view)
    return logging(view, group)


def _forwards(parts: Iterable[ReachableServices]) -> Iterator[Forward]:
    """Yield the actions of all route entries that forward requests."""
    for service in (service for part in parts for service in part.services):
        for entry in service.table:
            if isinstance(entry.action, Forward):
                yield entry.action


@pytest.mark.parametrize("forgotten", ["", *sorted(RETRIED)])
def test_retries_follow_added_and_edited_retry_policies(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An added and an edited Retry change the attempts, unless their reads are forgotten."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    things = (a.service("shop"), a.workload("buyer", "10.0.0.1"), MeshConfig(permissive=True))
    view = a.view(*things)
    (group,) = groups(view)
    pin = Pin(reachable, view, group)

    def tried() -> list[int | None]:
        result = (service.retries for part in pin.value() for service in part.services)
        return [item.attempts if item else None for item in result]

    seen = [tried()]
    for attempts in (1, 2):
        retries = Retries((RetryCondition.RESET,), attempts)
        retry = Retry(a.policy_key("r"), a.identity("buyer"), (a.service_key("shop"),), retries)
        view.apply(view.edits_to(a.view(*things, retry).known()))
        seen.append(tried())
    assert (seen == [[None], [1], [2]]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(ROUTED)])
def test_route_rules_follow_added_and_edited_route_policies(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An added and an edited RoutePolicy change the timeout, unless their reads are forgotten."""
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    things = (a.service("shop"), a.workload("buyer", "10.0.0.1"), MeshConfig(permissive=True))
    view = a.view(*things)
    (group,) = groups(view)
    pin = Pin(reachable, view, group)

    def timeouts() -> list[timedelta | None]:
        return [forward.timeout for forward in _forwards(pin.value())]

    seen = [timeouts()]
    for seconds in (1, 2):
        rules = (RouteRule((), RouteActions(timedelta(seconds=seconds))),)
        policy = RoutePolicy(a.policy_key("p"), a.service_key("shop"), rules)
        view.apply(view.edits_to(a.view(*things, policy).known()))
        seen.append(timeouts())
    assert (seen == [[None], [timedelta(seconds=1)], [timedelta(seconds=2)]]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *map("".join, ROOTS.items())])
def test_missing_active_root_problem_disappears_with_an_active_root(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passive root alone is a problem, because no root signs; an active root resolves it.

    If the reads of the set of roots are forgotten, the problem remains.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    passive = MeshRootCertificate(a.policy_key("p"), SecretName(Namespace("default"), "p"), role=Role.PASSIVE)
    active = MeshRootCertificate(a.policy_key("a"), SecretName(Namespace("default"), "a"))
    view = a.view(passive)
    linter, problems = Linter(view), AllProblems()
    problems.report_lint(linter.looks())
    before = [problem.code for problem in problems.all()]
    view.apply(view.edits_to(a.view(passive, active).known()))
    problems.report_lint(linter.looks())
    assert before == [Code.NO_ACTIVE_ROOT.value]
    assert ([problem.code for problem in problems.all()] == []) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(REACHED)])
def test_balancing_and_hash_keys_follow_upstream_policies(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An added and an edited UpstreamPolicy change the cluster's balancing and the routes' hash keys.

    If the reads of one table are forgotten, a change is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    things = (a.service("shop"), a.workload("buyer", "10.0.0.1"), MeshConfig(permissive=True))
    view = a.view(*things)
    (group,) = groups(view)
    pin = Pin(reachable, view, group)

    def reached() -> list[tuple[BalancingAlgorithm, tuple[HashKey, ...]]]:
        return [
            (to.balancing, forward.keys)
            for part in pin.value()
            for to in part.destinations
            for forward in _forwards((part,))
            if isinstance(to, ServiceDestination)
        ]

    key, seen = HashKey(KeyKind.HEADER, "x-user"), [reached()]
    for load in (
        LoadBalancing(BalancingAlgorithm.RANDOM),
        LoadBalancing(BalancingAlgorithm.CONSISTENT_HASH, key),
    ):
        policy = UpstreamPolicy(a.policy_key("p"), a.service_key("shop"), load=load)
        view.apply(view.edits_to(a.view(*things, policy).known()))
        seen.append(reached())
    assert (
        seen
        == [
            [(BalancingAlgorithm.ROUND_ROBIN, ())],
            [(BalancingAlgorithm.RANDOM, ())],
            [(BalancingAlgorithm.CONSISTENT_HASH, (key,))],
        ]
    ) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(PLAIN)])
def test_plaintext_access_rules_follow_mutual_tls_policies(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A permissive MutualTLS adds a rule for plaintext, and its edit to strict removes the rule.

    If the reads of one table are forgotten, a change is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    things = (a.service("shop"), a.workload("shop", "10.0.0.1"))
    view = a.view(*things)
    (group,) = groups(view)
    pin = Pin(inbound_ports, view, group)
    seen = [[len(port.access.rules) for port in pin.value()]]
    for mode in (TlsMode.PERMISSIVE, TlsMode.STRICT):
        policy = MutualTLS(a.policy_key("p"), mode, plaintext=PlainText())
        view.apply(view.edits_to(a.view(*things, policy).known()))
        seen.append([len(port.access.rules) for port in pin.value()])
    assert (seen == [[0], [1], [0]]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(ASKED)])
def test_external_authorizer_follows_its_policy(forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An added ExternalAuthorization sets the ports' authorizer, and its edit removes the authorizer.

    If the reads of one table are forgotten, a change is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    things = (a.service("shop"), a.workload("shop", "10.0.0.1"))
    view = a.view(*things)
    (group,) = groups(view)
    pin = Pin(inbound_ports, view, group)
    seen = [[port.asked is not None for port in pin.value()]]
    for asked in (Authorizer(HostPort("opa", 9191), "asked", timedelta(seconds=1)), None):
        policy = ExternalAuthorization(a.policy_key("p"), asked)
        view.apply(view.edits_to(a.view(*things, policy).known()))
        seen.append([port.asked is not None for port in pin.value()])
    assert (seen == [[False], [True], [False]]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(WATCHED)])
def test_tapped_ports_follow_the_taps_of_their_service(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tap starts, a second one joins, and both end; a tap of another service changes nothing.

    If the reads of taps are forgotten, a change is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    view = a.view(a.service("shop"), a.workload("shop", "10.0.0.1"))
    (group,) = groups(view)
    pin = Pin(inbound_ports, view, group)
    everything, posts = TapChoice(), TapChoice(methods=("POST",))
    seen = [[port.tapped for port in pin.value()]]
    for name, tapped in (
        ("shop", (everything,)),
        ("other", (posts,)),
        ("shop", (everything, posts)),
        ("shop", None),
    ):
        view.apply(Edits(taps={ServiceKey(a.DEFAULT, ServiceName(name)): tapped}))
        seen.append([port.tapped for port in pin.value()])
    wanted = [[()], [(everything,)], [(everything,)], [(everything, posts)], [()]]
    assert (seen == wanted) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(CLAIMED)])
def test_sidecar_belongs_to_the_oldest_workload_with_its_uuid(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older workload with the same UUID takes the sidecar over, and its removal gives it back.

    If the reads of the index are forgotten, the takeover is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    new = replace(a.workload("a", "10.0.0.1", app="shop", account="a"), created="2026-11-22T10:00:00Z")
    of_new = replace(a.workload("b", "10.0.0.2", app="shop", account="b"), uuid=new.uuid)
    old = replace(of_new, created="2026-11-22T09:00:00Z")

    def holders() -> list[str]:
        return [group.identity.service_account for group in groups(view)]

    view = a.view(new)
    assert holders() == ["a"]
    view.apply(view.edits_to(a.view(new, old).known()))
    assert (holders() == ["b"]) is (not forgotten)
    view.apply(view.edits_to(a.view(new).known()))
    assert holders() == ["a"]


@pytest.mark.parametrize("forgotten", ["", *map("".join, LINTED.items())])
def test_problems_follow_names_in_other_namespaces_and_the_widest_target(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that appears in another namespace, and a target with more sources than any, change problems.

    The problems must equal those found from scratch, unless the reads of one index are forgotten.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    workloads = [a.workload(item, f"10.0.0.{number}") for number, item in enumerate("abcd", 1)]
    targets = (a.target("t", "a", "gone"), a.target("u", "b", "a"))
    view = a.view(*workloads, *targets)
    linter, problems = Linter(view), AllProblems()
    problems.report_lint(linter.looks())
    elsewhere = a.workload("gone", "10.0.0.9", namespace="elsewhere")
    wide = replace(targets[1], sources=(*map(a.identity, "bcd"), elsewhere.identity))
    for things in ((*workloads, *targets, elsewhere), (*workloads, targets[0], wide, elsewhere)):
        anew = a.view(*things)
        view.apply(view.edits_to(anew.known()))
        problems.report_lint(linter.looks())
        if problems.all() != found_from_nothing(anew):
            assert forgotten
            return
    assert not forgotten


@pytest.mark.parametrize("forgotten", ["", *sorted(MESHED)])
def test_service_without_endpoints_is_a_problem_once_its_namespace_has_a_sidecar(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace without sidecars is outside the mesh, so an empty Service there is no problem.

    If the reads of the index are forgotten, the problem is missed.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    empty = a.service("empty", app="none")
    view = a.view(empty, a.workload("only", "10.0.0.1", sidecar=False))
    linter, problems = Linter(view), AllProblems()
    problems.report_lint(linter.looks())
    assert problems.all() == ()
    view.apply(view.edits_to(a.view(empty, a.workload("only", "10.0.0.1")).known()))
    problems.report_lint(linter.looks())
    lines = [problem.code for problem in problems.all() if str(problem.key) == "Service default/empty"]
    assert (lines == ["MW2020"]) is (not forgotten)


@pytest.mark.parametrize("forgotten", ["", *sorted(SUGGESTED)])
def test_suggested_names_follow_new_pod_templates_and_workloads(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown ServiceAccount gets a suggestion once a Deployment or a workload has a similar name.

    If the reads of one index are forgotten, the problems differ from those found from scratch.
    """
    monkeypatch.setattr(Graph, "_link", forgetful(forgotten))
    there: tuple[object, ...] = (a.workload("shop", "10.0.0.1"), a.target("t", "warehose", "shop"))
    view = a.view(*there)
    linter, problems = Linter(view), AllProblems()
    problems.report_lint(linter.looks())
    nearer = a.deployment("warehouze", account="warehouze"), a.workload("warehouse", "10.0.0.2")
    right = True
    for item in nearer:
        there = (*there, item)
        anew = a.view(*there)
        view.apply(view.edits_to(anew.known()))
        problems.report_lint(linter.looks())
        right = right and problems.all() == found_from_nothing(anew)
        assert forgotten or str(item.key.name) in str(problems.all())
    assert right == (not forgotten)


def test_engine_that_ignores_changed_outcomes_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: an engine that takes every outcome for unchanged differs from scratch."""
    monkeypatch.setattr(Derivation, "outcome_is", lambda *_: True)
    assert mismatch(0, 10)


WITHHELD = (5, 12, 13, 18)[-examples(2, fresh=4) :]
"""Histories in which the group of a proxy changes that rejected something; of a hundred there are a dozen."""


@pytest.mark.fuzzed
def test_withheld_resources_follow_changes_of_the_proxys_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that rejected something is served the later changes of its group.

    Negative control: a quarantine that ignores those proxies on a change is detected.
    """
    after = Quarantine.after

    def forgetful(self: Quarantine, step: Step) -> Step:
        with monkeypatch.context() as patch:
            patch.setattr(self._records, "by_node", {})
            return after(self, step)

    assert [seed for seed in WITHHELD if mismatch(seed)] == []
    monkeypatch.setattr(Quarantine, "after", forgetful)
    assert any(map(mismatch, WITHHELD))


EQUAL = (496, 2469)[: examples(1, fresh=2)]
"""Histories in which a proxy refuses a unit of a route that was the same, made from something else."""


@pytest.mark.fuzzed
def test_resource_of_equal_content_but_other_inputs_is_replaced() -> None:
    """Units are withheld from the current resource, even if only its inputs differ and not its content.

    Otherwise a proxy that rejected a unit would be served the older policy without that unit.
    """
    assert [seed for seed in EQUAL if mismatch(seed, STEPS)] == []
