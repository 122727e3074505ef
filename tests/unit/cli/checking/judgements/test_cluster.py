"""Tests of the judgements of a cluster and of its installation."""

from datetime import UTC, datetime, timedelta

import pytest

from meshwright.cli.checking.cluster.pods import selects
from meshwright.cli.checking.cluster.streams import remark
from meshwright.cli.checking.judgements import cluster
from meshwright.cli.checking.judgements import installation as installed
from meshwright.cli.checking.judgements.check import Check, Status, UnavailableCheck
from meshwright.cli.checking.judgements.cluster import Injector
from meshwright.cli.checking.judgements.installation import Offer, PodFinding, Runner, WebhookRegistration
from meshwright.cli.checking.judgements.permissions import (
    Need,
    granted,
    needed,
    permitted,
    to_apply,
    unserved,
)
from meshwright.kubernetes.injection.credentials.pod_roots import ConfigMapState
from meshwright.mesh.kinds import (
    DEPLOYMENT,
    HTTP_ROUTE,
    HTTP_ROUTE_GROUP,
    STATEFUL_SET,
    TLS_ROUTE,
    TRAFFIC_TARGET,
    Kind,
)
from meshwright.specs.kinds import READ

NOW = datetime(2026, 11, 23, tzinfo=UTC)
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "a"},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
}
POD = Need("list", "", "pods")


@pytest.mark.parametrize(
    ("version", "status"), [((1, 24), "failed"), ((1, 28), "warning"), ((1, 29), "ok"), ((1, 36), "ok")]
)
def test_version_of_the_api_server_is_judged(version: tuple[int, int], status: str) -> None:
    """Versions before 1.25 are a failure.

    Those before 1.29 get a warning, because native sidecars are missing.
    """
    assert cluster.api_server(version, "v").status == status


def test_needed_permissions_are_read_from_the_manifests() -> None:
    """Permissions are needed to apply the manifests and to grant their roles.

    A kind that a manifest defines need not be served yet.
    """
    kind = ("rbac.authorization.k8s.io", "ClusterRole")
    assert {need.verb for need in to_apply([ROLE], {kind: "clusterroles"})} == {"create", "patch"}
    assert granted([ROLE]) == (POD,)
    assert unserved([ROLE], {}) == ("ClusterRole.rbac.authorization.k8s.io",)
    spec = {"group": "g", "names": {"kind": "K"}}
    definition = {"apiVersion": "d/v1", "kind": "CustomResourceDefinition", "spec": spec}
    made = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "k"}}
    assert unserved([definition, made], {("d", "CustomResourceDefinition"): "ds"}) == ()


def test_gateway_api_needs_permissions_only_where_its_kinds_are_served() -> None:
    """The definitions are not ours, and a control plane of a release before lacks these permissions."""
    group = "gateway.networking.k8s.io"
    route, status = Need("list", group, "httproutes"), Need("update", group, "httproutes/status")
    other = Need("list", group, "grpcroutes")
    assert needed((POD, route, status, other), set()) == (POD,)
    assert needed((POD, route, status, other), {(group, "httproutes")}) == (POD, route, status)
    mesh = Need("patch", "gateway.networking.x-k8s.io", "xmeshes/status")
    assert needed((POD, mesh), {(group, "httproutes")}) == (POD,)


def test_own_kinds_need_permissions_only_where_they_are_defined() -> None:
    """A release before lacks the newest kinds, and `check` of this release is run before an upgrade."""
    group = "policy.meshwright.dev"
    limits, status = (
        Need("list", group, "clienttrafficpolicies"),
        Need("patch", group, "clienttrafficpolicies/status"),
    )
    routing = Need("list", group, "routepolicies")
    assert needed((limits, status, routing), {(group, "routepolicies")}) == (routing,)
    assert needed((limits, status), {(group, "clienttrafficpolicies")}) == (limits, status)


def test_denied_permission_is_named() -> None:
    """A permission that could not be checked is a warning and never a success."""
    assert permitted("p", "you", {POD: True}, "").status is Status.OK
    denied = permitted("p", "you", {POD: False}, "ask")
    assert (denied.status, denied.do) == (Status.FAILED, "ask")
    assert "list pods" in denied.finding
    assert permitted("p", "you", {POD: UnavailableCheck("away")}, "").status is Status.WARNING
    assert permitted("p", "you", {}, "", ["Nothing"]).status is Status.FAILED


def test_other_meshes_are_known_by_their_webhooks() -> None:
    """A known mesh's webhook is a warning with its name; an unknown webhook is ignored."""
    istio = Injector("namespace.sidecar-injector.istio.io", "istio-sidecar-injector")
    assert cluster.other_meshes([Injector("quota.example.com", "quota")], []).status is Status.OK
    check = cluster.other_meshes([istio], ["istio-system/istio-cni-node"])
    assert check.status is Status.WARNING
    assert "Istio (istio-sidecar-injector)" in check.finding


def test_remains_of_open_service_mesh_are_judged() -> None:
    """Webhooks without a running controller are a failure. They block the creation of Pods and policy."""
    hook = "mutatingwebhookconfiguration/osm-webhook-osm"
    assert cluster.open_service_mesh([], [], 0).status is Status.OK
    assert cluster.open_service_mesh(["osm-system/osm-controller"], [hook], 3).status is Status.WARNING
    assert cluster.open_service_mesh([], [], 1).status is Status.WARNING
    left = cluster.open_service_mesh([], [hook], 1)
    assert (left.status, "1 Pod with its sidecar" in left.finding) == (Status.FAILED, True)
    assert left.do.endswith(f"`kubectl delete {hook}`")


def test_pods_without_a_control_plane_connection_are_named() -> None:
    """Each Pod is named with its agent's message, and the number of unchecked Pods is shown."""
    assert installed.streams([], 0, 2).status is Status.OK
    assert installed.streams([], 2, 2).finding == "all of 2 are connected to the control plane"
    assert (
        installed.streams([], 3, 2).finding
        == "all of 2 are connected to the control plane; 1 more were not checked"
    )
    check = installed.streams([PodFinding("shop/cart", "refused: nobody listens there")], 3, 2)
    assert (check.status, check.finding) == (
        Status.FAILED,
        "1 of 2 not connected to the control plane: shop/cart (refused: nobody listens there)",
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("ok\n", ""),
        (
            "ok\nbut: no control plane at 10.0.0.1:15128: refused\n",
            "no control plane at 10.0.0.1:15128: refused",
        ),
        ("but this is another's page\n", ""),
        ("", ""),
    ],
)
def test_remark_of_a_ready_agent_is_read(answer: str, expected: str) -> None:
    """A ready proxy without a control plane has the remark in the lines that begin with "but:"."""
    assert remark(answer) == expected


def test_kinds_with_a_conversion_webhook_are_named() -> None:
    """Kinds whose webhook has no endpoint cannot be read, which is a failure; others are a warning."""
    result = {"Service osm-system/osm-bootstrap": ["TrafficSplit"], "https://a": ["TrafficTarget"]}
    there, gone = (cluster.conversions(result, away) for away in ([], ["Service osm-system/osm-bootstrap"]))
    assert (there.status, gone.status) == (Status.WARNING, Status.FAILED)
    assert "TrafficSplit, TrafficTarget" in there.finding
    assert gone.finding.endswith(
        "lacks a ready endpoint, so objects of these kinds cannot be read: TrafficSplit"
    )


def test_served_versions_of_kinds_are_judged() -> None:
    """A kind without a readable version is a failure, and an older version is a warning.

    A missing kind is a failure only after the installation.
    """
    newest = {kind: READ[kind].versions[-1:] for kind in (TRAFFIC_TARGET, HTTP_ROUTE_GROUP)}
    assert cluster.kinds(newest, before=False).status is Status.OK
    assert cluster.kinds({**newest, TRAFFIC_TARGET: ("v9",)}, before=False).status is Status.FAILED
    assert cluster.kinds({**newest, TRAFFIC_TARGET: ()}, before=False).status is Status.FAILED
    assert cluster.kinds({**newest, TRAFFIC_TARGET: ()}, before=True).status is Status.OK
    assert cluster.kinds({**newest, TRAFFIC_TARGET: ("v1alpha1",)}, before=False).status is Status.WARNING


def test_kind_that_an_older_installation_lacks_is_a_warning() -> None:
    """The check may be of a newer release than the installation, before an upgrade."""
    served = {TRAFFIC_TARGET: (), HTTP_ROUTE_GROUP: READ[HTTP_ROUTE_GROUP].versions[-1:]}
    check = cluster.kinds(served, before=False, other_release="0.1.0")
    assert (check.status, check.finding) == (
        Status.WARNING,
        "not defined, because version 0.1.0 is installed: TrafficTarget",
    )


def test_definitions_of_the_gateway_api_are_judged() -> None:
    """They are another project's, so a missing one is no failure, and an unreadable version is."""
    some = {HTTP_ROUTE: ("v1", "v1beta1"), TLS_ROUTE: ()}
    good = cluster.gateway_api(some)
    assert (good.status, good.finding) == (Status.OK, "HTTPRoute can be read; not defined: TLSRoute")
    bad = cluster.gateway_api({**some, TLS_ROUTE: ("v1alpha9",)})
    assert bad.status is Status.FAILED
    assert "TLSRoute (v1alpha9)" in bad.finding


def test_control_plane_runs_in_one_version() -> None:
    """A missing or unready Pod is a failure, and several images are a warning."""
    good = Runner("a-0", ready=True, image="i:1")
    assert installed.control_plane([], "home").status is Status.FAILED
    assert installed.control_plane([good], "home").status is Status.OK
    assert installed.control_plane([Runner("a-0", False, "i:1", "Pending")], "home").status is Status.FAILED
    assert installed.control_plane([good, Runner("a-1", True, "i:2")], "home").status is Status.WARNING


def test_unready_control_plane_is_deleted_after_a_rollback() -> None:
    """A StatefulSet does not replace a Pod that is not ready, so the remedy has the command."""
    check = installed.control_plane([Runner("meshwright-0", False, "i:2", "ImagePullBackOff")], "mesh")
    assert check.finding == "not ready: meshwright-0 (ImagePullBackOff)"
    assert check.do == (
        "`kubectl -n mesh describe pod meshwright-0`, and its log; after an upgrade or rollback that removes "
        "the cause, `kubectl -n mesh delete pod meshwright-0`, because a StatefulSet does not replace a Pod "
        "that is not ready"
    )


def test_one_unready_server_of_several_is_a_warning() -> None:
    """The other one serves. A Deployment replaces the Pod by itself, so no Pod is to be deleted."""
    runners = [
        Runner("meshwright-5d-a", True, "i:2", owner=DEPLOYMENT),
        Runner("meshwright-5d-b", False, "i:2", "Pending", owner=DEPLOYMENT),
    ]
    assert installed.control_plane(runners, "mesh") == Check.warning(
        "control plane",
        "1 of 2 Pods not ready: meshwright-5d-b (Pending)",
        "`kubectl -n mesh describe pod meshwright-5d-b`, and its log",
    )
    assert installed.control_plane(runners[1:], "mesh").status is Status.FAILED


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (None, Status.FAILED),
        (WebhookRegistration("w", 0), Status.FAILED),
        (WebhookRegistration("w", 1), Status.FAILED),
        (WebhookRegistration("w", 1, ends=(NOW - timedelta(days=1),)), Status.FAILED),
        (WebhookRegistration("w", 1, ends=(NOW + timedelta(days=1),)), Status.WARNING),
        (WebhookRegistration("w", 1, ends=(NOW + timedelta(days=3000),)), Status.OK),
    ],
)
def test_webhook_must_be_registered_with_valid_roots(
    found: WebhookRegistration | None, status: Status
) -> None:
    """A missing, empty or expired webhook is a failure. An unwanted webhook may be missing."""
    assert installed.webhook("w", found, NOW, wanted=True).status is status
    assert installed.webhook("w", None, NOW, wanted=False).status is Status.OK


def test_results_of_services_webhooks_and_pods_are_judged() -> None:
    """Each judgement is tested with a good and a bad result."""
    pod = PodFinding("shop/web", "why")
    assert [installed.service("s", "a/b", item).status for item in (0, 1)] == [Status.FAILED, Status.OK]
    for judge in (installed.judged, installed.injects):
        assert judge("j", "shop", "x", ours=True).status is Status.OK
        assert judge("j", "shop", "x", ours=False).status is Status.FAILED
    assert [installed.outside(item).status for item in ([], ["shop"])] == [Status.OK, Status.FAILED]
    assert "shop/web (why)" in installed.uninjected([pod], 1).finding
    assert [installed.uninjected([], item).status for item in (0, 1)] == [Status.WARNING, Status.OK]
    assert [installed.outdated(item, 1).status for item in ([], [pod])] == [Status.OK, Status.WARNING]
    assert [installed.sidecars(item, [pod], 1).status for item in ([], [pod])] == [
        Status.WARNING,
        Status.FAILED,
    ]
    assert installed.sidecars([], [], 1).status is Status.OK


@pytest.mark.parametrize("standing", ConfigMapState)
def test_wrong_roots_are_named_with_their_namespace(standing: ConfigMapState) -> None:
    """Any state of the ConfigMap other than the right one is a failure that names the namespace."""
    check = installed.roots({"shop": standing}, "meshwright-roots")
    assert check.status is (Status.OK if standing is ConfigMapState.RIGHT else Status.FAILED)
    assert standing is ConfigMapState.RIGHT or "shop" in check.finding


def test_selector_of_a_webhook_must_match_completely() -> None:
    """A missing selector matches all labels; otherwise each requirement must hold."""
    expressions = [{"key": "b", "operator": "NotIn", "values": ["x"]}, {"key": "c", "operator": "Exists"}]
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": expressions}
    assert selects(None, {})
    assert selects(selector, {"a": "1", "c": ""})
    assert not selects(selector, {"a": "1", "b": "x", "c": ""})
    assert not selects(selector, {"a": "1"})


@pytest.mark.parametrize(("kind", "replicas"), [(STATEFUL_SET, 1), (DEPLOYMENT, 2)], ids=str)
def test_check_suggests_to_scale_up_a_control_plane_of_zero_replicas(kind: Kind, replicas: int) -> None:
    """The next step is to scale the StatefulSet or Deployment, and not to install it again."""
    named, command = (kind, "meshwright"), kind.name.lower()
    check = installed.no_control_plane({named: 0}, "mesh")
    assert (check.status, check.finding) == (Status.FAILED, f"{kind.name} mesh/meshwright is scaled to 0")
    assert check.do == f"`kubectl -n mesh scale {command} meshwright --replicas={replicas}`"
    assert "install the control plane" in installed.no_control_plane({}, "mesh").do
    assert f"describe {command}" in installed.no_control_plane({named: 1}, "mesh").do


LIMIT = 'pods "x" is forbidden: maximum cpu usage per Container is 1. No limit is specified'
GONE = 'Internal error occurred: failed calling webhook "namespace.inject.meshwright.dev": refused'


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], {}),
        ([Offer("a", image="i")], {"asked": Status.OK, "Pods with sidecar": Status.OK}),
        ([Offer("a", refused=LIMIT)], {"Pods with sidecar": Status.FAILED}),
        (
            [Offer("a", refused=LIMIT), Offer("b", image="i")],
            {"asked": Status.OK, "Pods with sidecar": Status.FAILED},
        ),
        ([Offer("a")], {"asked": Status.FAILED, "Pods with sidecar": Status.OK}),
        ([Offer("a", refused=GONE)], {"asked": Status.FAILED, "Pods with sidecar": Status.OK}),
    ],
)
def test_namespace_that_refuses_injected_pods_is_named(
    found: list[Offer], expected: dict[str, Status]
) -> None:
    """A quota or a LimitRange is not the webhook's failure, which another namespace shows to work."""
    lines = {offer.name: offer for offer in installed.offers("asked", found, len(found))}
    assert {name: line.status for name, line in lines.items()} == expected
    if expected.get("Pods with sidecar") is Status.FAILED:
        assert f"a ({LIMIT})" in lines["Pods with sidecar"].finding
