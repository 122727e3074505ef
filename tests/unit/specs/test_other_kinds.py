"""Tests of kinds that are not read: unenforced policy of OSM is a warning, other kinds are information."""

import pytest

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import DEPLOYMENT, TCP_ROUTE, Kind
from meshwright.mesh.names import Namespace, Port, ServiceAccountName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.workload import PodTemplate, WorkloadKey, WorkloadPort
from meshwright.specs.kinds import kind_meant
from tests.meshes.reading import ORIGIN, complaints, reading, value

SHOP = Namespace("shop")
OUTSIDE = (
    "is not enforced by Meshwright: sidecars refuse connections from outside the mesh even if "
    "this object allows them; write an IngressBackend to allow them"
)


def _named(api_version: str, kind: str, rest: str = "") -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a, namespace: shop}}\n{rest}"


@pytest.mark.parametrize(
    ("group", "kind", "said"),
    [
        ("policy", "AccessControl", OUTSIDE),
        (
            "policy",
            "AccessCert",
            "is not enforced by Meshwright: the mesh issues no certificates for clients outside the mesh",
        ),
        (
            "config",
            "MultiClusterService",
            "is not enforced by Meshwright: the mesh does not know services of other clusters",
        ),
    ],
)
def test_unenforced_osm_policy_is_a_warning_with_the_alternative(group: str, kind: str, said: str) -> None:
    """The problem has the object's key, and no object is in force."""
    manifest_reading = reading(_named(f"{group}.openservicemesh.io/v1alpha1", kind, "spec: {anything: [1]}"))
    (problem,) = manifest_reading.problems
    assert (problem.severity.value, problem.code, problem.field, problem.value) == (
        "warning",
        "MW1030",
        "kind",
        f'"{kind}"',
    )
    assert (problem.key, problem.expected) == (
        ObjectKey(Kind(kind, f"{group}.openservicemesh.io"), SHOP, "a"),
        said,
    )
    assert (manifest_reading.objects, manifest_reading.key, manifest_reading.unread) == ((), None, ())


def test_presets_config_map_of_osm_is_a_warning() -> None:
    """The chart's ConfigMap is no MeshConfig, although its content would open the mesh.

    Others are ignored.
    """
    presets = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: preset-mesh-config, namespace: osm-system}\n"
        'data: {preset-mesh-config.json: \'{"traffic": {"enablePermissiveTrafficPolicyMode": true}}\'}'
    )
    assert complaints(presets) == [("warning", "MW1030", "kind", '"ConfigMap"')]
    assert complaints(_named("v1", "ConfigMap")) == [("info", "MW1031", "kind", '"ConfigMap"')]


@pytest.mark.parametrize(
    ("api_version", "kind", "called"),
    [
        ("cert-manager.io/v1", "Certificate", "Certificate.cert-manager.io"),
        ("gateway.networking.k8s.io/v1alpha2", "UDPRoute", "UDPRoute.gateway.networking.k8s.io"),
        ("projectcontour.io/v1", "HTTPProxy", "HTTPProxy.projectcontour.io"),
        ("serving.knative.dev/v1", "Service", "Service.serving.knative.dev"),
        ("networking.istio.io/v1", "ServiceEntry", "ServiceEntry.networking.istio.io"),
        ("traefik.io/v1alpha1", "TraefikService", "TraefikService.traefik.io"),
        ("networking.k8s.io/v1", "Ingress", "Ingress.networking.k8s.io"),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "CustomResourceDefinition.apiextensions.k8s.io",
        ),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization", "Kustomization.kustomize.config.k8s.io"),
        ("argoproj.io/v1alpha1", "Workload", "Workload.argoproj.io"),
        ("metrics.smi-spec.io/v1alpha1", "TrafficMetrics", "TrafficMetrics.metrics.smi-spec.io"),
        ("v1", "LimitRange", "LimitRange"),
        ("apps/v1", "ControllerRevision", "ControllerRevision.apps"),
    ],
)
def test_kind_of_another_project_is_reported_as_information(api_version: str, kind: str, called: str) -> None:
    """Its content is not read, and metadata may be missing, as in kustomize."""
    for text in (
        _named(api_version, kind, "spec: {password: hunter2}"),
        f"apiVersion: {api_version}\nkind: {kind}",
    ):
        manifest_reading = reading(text)
        assert [
            (problem.severity.value, problem.code, problem.key, str(problem))
            for problem in manifest_reading.problems
        ] == [
            (
                "info",
                "MW1031",
                None,
                (
                    f'MW1031 {ORIGIN}: document: kind is "{called}": Meshwright does not use '
                    "objects of this kind"
                ),
            )
        ]
        assert (manifest_reading.objects, manifest_reading.key, manifest_reading.unread) == ((), None, ())


POD = """
    metadata:
      labels: {app: store, version: v1}
    spec:
      serviceAccountName: keeper
      containers:
      - name: store
        image: store:1
        env: [{name: PASSWORD, value: hunter2}]
        ports: [{containerPort: 8080, name: web}, {containerPort: 53, protocol: UDP}]
      - {name: other, image: other:1, ports: [{containerPort: 9100}]}
"""


def _template(kind: Kind, ports: tuple[WorkloadPort, ...] = (), account: str = "default") -> PodTemplate:
    labels = (("app", "store"), ("version", "v1")) if ports else ()
    return PodTemplate(
        kind, WorkloadKey(SHOP, "a"), ServiceIdentity(SHOP, ServiceAccountName(account)), labels, ports
    )


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1beta2", "Deployment"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("v1", "ReplicationController"),
        ("v1", "PodTemplate"),
        ("v1", "Pod"),
    ],
)
def test_pod_template_of_every_controller_is_read(api_version: str, kind: str) -> None:
    """Labels, identity and TCP ports of the future Pods are read, and nothing else."""
    inner = "  template:" + POD
    texts = {
        "Pod": POD.replace("\n    ", "\n").replace(
            "metadata:\n", "metadata:\n  name: a\n  namespace: shop\n"
        ),
        "PodTemplate": "template:" + POD,
        "CronJob": "spec:\n  jobTemplate:\n   spec:\n"
        + inner.replace("\n", "\n  ").replace("  template", "    template"),
    }
    text = texts.get(kind, "spec:\n  replicas: 0\n  strategy: {type: [odd]}\n" + inner)
    head = f"apiVersion: {api_version}\nkind: {kind}\n"
    manifest_reading = reading(head + text if kind == "Pod" else _named(api_version, kind, text))
    ports = (WorkloadPort(Port(8080), "web"), WorkloadPort(Port(9100)))
    of = kind_meant(kind, api_version)
    assert manifest_reading.objects == (
        (ObjectKey(of, SHOP, "a"), _template(of, tuple(sorted(ports)), "keeper")),
    )
    assert [problem.code for problem in manifest_reading.problems] == (["MW1022"] if kind == "Pod" else [])


def test_deployment_without_account_and_labels_has_the_defaults() -> None:
    """The ServiceAccount is `default`, and there are no labels."""
    template = "spec: {template: {spec: {containers: [{name: a, image: b}]}}}"
    assert value(_named("apps/v1", "Deployment", template)) == _template(DEPLOYMENT)


def test_old_replica_sets_of_a_deployment_are_not_used() -> None:
    """They have the identity of an earlier template, which no Pod has any more."""
    owned = "  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: a, uid: u}]\n"
    head = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  name: a\n  namespace: shop\n"
    left = reading(head + owned + "spec:\n  replicas: 0\n  template:" + POD)
    assert (left.objects, left.problems, left.unread) == ((), (), ())
    for text in (owned + "spec:\n  replicas: 1\n  template:", "spec:\n  replicas: 0\n  template:"):
        assert len(reading(head + text + POD).objects) == 1


def test_annotations_are_read_in_the_pod_template() -> None:
    """An annotation on the controller itself has no effect, and values are checked."""
    on_controller = (
        "apiVersion: apps/v1\nkind: Deployment\n"
        "metadata: {name: a, annotations: {meshwright.dev/egress-services: none}}\n"
        "spec: {template: {metadata: {annotations: {%s}}, spec: {}}}"
    )
    assert complaints(on_controller % "meshwright.dev/egress-services: none") == [
        ("warning", "MW1025", "metadata.annotations[meshwright.dev/egress-services]", '"none"')
    ]
    assert complaints(on_controller % "meshwright.dev/egress-service: none")[0] == (
        "warning",
        "MW1025",
        "spec.template.metadata.annotations[meshwright.dev/egress-service]",
        '"none"',
    )
    assert (
        "error",
        "MW1013",
        "spec.template.metadata.annotations.meshwright.dev/egress-services",
        '"all"',
    ) in (complaints(on_controller % "meshwright.dev/egress-services: all"))


def test_list_of_one_kind_is_read_as_the_api_server_returns_it() -> None:
    """Items omit kind and version; a list of another project's kind is not read."""
    manifest_reading = reading("""
apiVersion: specs.smi-spec.io/v1alpha4
kind: TCPRouteList
metadata: {resourceVersion: "17", continue: ""}
items:
- {metadata: {name: a, namespace: shop}, spec: {matches: {ports: [80]}}}
- {apiVersion: specs.smi-spec.io/v1alpha4, kind: TCPRoute, metadata: {name: b, namespace: shop}}
""")
    assert [key for key, _ in manifest_reading.objects] == [
        ObjectKey(TCP_ROUTE, SHOP, name) for name in ("a", "b")
    ]
    assert manifest_reading.problems == ()
    others = "apiVersion: traefik.io/v1alpha1\nkind: TCPRouteList\nitems: [{metadata: {name: a}}]"
    assert complaints(others) == [("info", "MW1031", "kind", '"TCPRouteList.traefik.io"')]
    limits = (
        "apiVersion: v1\nkind: LimitRangeList\nitems: [{metadata: {name: a}, data: {a: aHVudGVyMg==}}, {}]"
    )
    assert complaints(limits) == [("info", "MW1031", "kind", '"LimitRange"')] * 2
    unenforced = (
        "apiVersion: policy.openservicemesh.io/v1alpha1\nkind: AccessCertList\nitems: [{metadata: {name: a}}]"
    )
    assert complaints(unenforced) == [("warning", "MW1030", "kind", '"AccessCert"')]
