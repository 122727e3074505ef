"""Tests of `meshwright lint` with manifests of OSM users: no false alarms, and all real faults."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools import libyaml
from tests.tools.forked_cli import Done
from tests.unit.cli import osm_demo as osm

Run = Callable[..., Done]
Lint = Callable[..., list[tuple[str, str, str, str]]]
Change = Callable[[list[osm.Manifest]], object]

GUESSED = [
    ("info", "MW2024", "Service bookstore/bookstore", "14001"),
    ("info", "MW2024", "Service bookstore/bookstore-v2", "14001"),
    ("info", "MW2024", "Service bookwarehouse/bookwarehouse", "14001"),
]
TO_COME = [
    ("info", "MW2025", "Service bookstore/bookstore-v2", "app=bookstore-v2"),
    ("info", "MW2025", "Service bookwarehouse/bookwarehouse", "app=bookwarehouse"),
    ("info", "MW2025", "Service bookwarehouse/mysql", "app=mysql"),
]


@pytest.fixture
def lint(run: Run, tmp_path: Path) -> Lint:
    """Return a function that lints files.

    The result is a sorted list of severity, code, object and value of each problem.
    """

    def lint(**files: str) -> list[tuple[str, str, str, str]]:
        return sorted(
            (problem["severity"], problem["code"], str(problem["object"]), problem["value"])
            for problem in _problems(run, tmp_path, files)
        )

    return lint


def _problems(run: Run, folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    directory = folder / "mesh"
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text, newline="")
    done = run("lint", str(directory), "--json")
    assert done.stderr == ""
    result: list[dict[str, Any]] = json.loads(done.stdout)
    assert done.returncode == any(item["severity"] == "error" for item in result)
    return result


@pytest.mark.parametrize(
    ("access", "specs", "splits"),
    [
        ("v1alpha3", "v1alpha4", "v1alpha2"),
        ("v1alpha3", "v1alpha4", "v1alpha4"),
        ("v1alpha3", "v1alpha3", "v1alpha3"),
        ("v1alpha2", "v1alpha3", "v1alpha2"),
        ("v1alpha2", "v1alpha2", "v1alpha1"),
        ("v1alpha1", "v1alpha1", "v1alpha2"),
    ],
)
def test_osm_demo_has_no_error_and_no_warning(lint: Lint, access: str, specs: str, splits: str) -> None:
    """In every version of SMI that OSM used, the demo causes only infos.

    An example is a Service whose pods do not exist yet. Before v1alpha4 a TCPRoute cannot name ports, and
    an info says that it means all ports.
    """
    wide_open = [("info", "MW2053", "TrafficTarget bookwarehouse/mysql", "")] * (specs != "v1alpha4")
    assert lint(demo=osm.text(osm.demo(access, specs, splits))) == [*GUESSED, *TO_COME, *wide_open]


def test_published_mesh_config_is_used_with_one_warning(run: Run, tmp_path: Path) -> None:
    """One warning names the fields in the wrong section, and the other fields are used."""
    result = _problems(run, tmp_path, {"demo": osm.text(osm.demo()), "config": osm.MESH_CONFIG})
    (warning,) = [item for item in result if item["severity"] != "info"]
    assert warning["line"] == (
        "MW1032 config.yaml:2 (document 1): MeshConfig default/osm-mesh-config: a MeshConfig "
        "does not have these fields, so they are ignored: "
        "spec.observability.inboundPortExclusionList (it belongs into spec.traffic), "
        "spec.observability.outboundIPRangeExclusionList (it belongs into spec.traffic), "
        "spec.observability.outboundPortExclusionList (it belongs into spec.traffic)"
    )
    permissive = osm.MESH_CONFIG.replace("PolicyMode: false", "PolicyMode: true")
    assert permissive != osm.MESH_CONFIG
    ask = ("--from", "bookthief/bookthief", "--to", "bookstore/bookstore-v2:14001", "DELETE", "/")
    pods = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s, labels: {app: %s, "
        "osm-proxy-uuid: %s}}\n"
        "spec: {serviceAccountName: %s}\n"
        "status: {podIP: 10.0.0.%d, conditions: [{type: Ready, status: 'True'}]}\n---\n"
    )
    running = "".join(
        pods % (name, namespace, name, name, name, number)
        for number, (namespace, name) in enumerate(
            (("bookstore", "bookstore-v2"), ("bookthief", "bookthief")), 1
        )
    )
    (tmp_path / "mesh" / "pods.yaml").write_text(running)
    assert run("explain", "--mesh", str(tmp_path / "mesh"), *ask).returncode == 1
    (tmp_path / "mesh" / "config.yaml").write_text(permissive)
    assert run("explain", "--mesh", str(tmp_path / "mesh"), *ask).returncode == 0


def _of(manifests: list[osm.Manifest], kind: str, name: str) -> osm.Manifest:
    (result,) = (
        manifest for manifest in manifests if (manifest["kind"], manifest["metadata"]["name"]) == (kind, name)
    )
    return result


def _pod(manifests: list[osm.Manifest], kind: str, name: str) -> osm.Manifest:
    return dict(_of(manifests, kind, name)["spec"]["template"])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            lambda demo: _pod(demo, "Deployment", "bookstore-v2")["spec"].update(
                serviceAccountName="bookstor-v2"
            ),
            [
                ("warning", "MW2007", "TrafficTarget bookstore/bookstore-v2", "bookstore/bookstore-v2"),
                ("warning", "MW2017", "TrafficSplit bookstore/bookstore-split", "bookstore/bookstore-v2"),
            ],
            id="misspelt ServiceAccount of a Deployment",
        ),
        pytest.param(
            lambda demo: _of(demo, "TrafficTarget", "mysql")["spec"]["sources"][0].update(
                name="bookwarehous"
            ),
            [("warning", "MW2008", "TrafficTarget bookwarehouse/mysql", "bookwarehouse/bookwarehous")],
            id="misspelt source",
        ),
        pytest.param(
            lambda demo: _of(demo, "TrafficTarget", "mysql")["spec"]["sources"][0].update(
                namespace="bookstore"
            ),
            [
                ("warning", "MW2008", "TrafficTarget bookwarehouse/mysql", "bookstore/bookwarehouse"),
                ("warning", "MW2009", "TrafficTarget bookwarehouse/mysql", "bookstore/bookwarehouse"),
            ],
            id="source of another namespace",
        ),
        pytest.param(
            lambda demo: _pod(demo, "StatefulSet", "mysql")["metadata"]["labels"].update(app="mysq"),
            [("warning", "MW2020", "Service bookwarehouse/mysql", "app=mysql")],
            id="wrong label",
        ),
        pytest.param(
            lambda demo: _of(demo, "Service", "mysql")["spec"]["ports"][0].update(targetPort="client"),
            [("warning", "MW2020", "Service bookwarehouse/mysql", "client")],
            id="name of no container's port",
        ),
        pytest.param(
            lambda demo: demo.remove(_of(demo, "TrafficTarget", "bookstore-v2")),
            [("warning", "MW2017", "TrafficSplit bookstore/bookstore-split", "bookstore/bookstore-v2")],
            id="backend that clients may not call",
        ),
        pytest.param(
            lambda demo: _of(demo, "TCPRoute", "mysql")["spec"]["matches"].update(ports=[3307]),
            [("warning", "MW2055", "TrafficTarget bookwarehouse/mysql", "")],
            id="rule for a port that nobody calls",
        ),
        pytest.param(
            lambda demo: _of(demo, "HTTPRouteGroup", "bookwarehouse-service-routes").update(
                kind="HTTPRouteGrup"
            ),
            [
                (
                    "error",
                    "MW1003",
                    "HTTPRouteGroup bookwarehouse/bookwarehouse-service-routes",
                    '"HTTPRouteGrup"',
                ),
                (
                    "error",
                    "MW2001",
                    "TrafficTarget bookwarehouse/bookwarehouse",
                    "bookwarehouse-service-routes",
                ),
                ("error", "MW2004", "TrafficTarget bookwarehouse/bookwarehouse", ""),
            ],
            id="misspelt kind",
        ),
        pytest.param(
            lambda demo: _of(demo, "TrafficTarget", "mysql")["spec"].update(source=[]),
            [
                ("error", "MW1012", "TrafficTarget bookwarehouse/mysql", "a list of 0 items"),
            ],
            id="unknown field of an access policy",
        ),
    ],
)
def test_real_faults_in_the_demo_are_found(
    lint: Lint, change: Change, expected: list[tuple[str, str, str, str]]
) -> None:
    """Negative control: each fault causes its own problems and no other warning or error."""
    manifests = osm.demo()
    change(manifests)
    result = lint(demo=osm.text(manifests))
    assert [item for item in result if item[0] != "info"] == expected


UNENFORCED = """
apiVersion: policy.openservicemesh.io/v1alpha1
kind: AccessControl
metadata: {name: front, namespace: bookstore}
spec:
  backends: [{name: bookstore, port: {number: 14001, protocol: http}}]
  sources: [{kind: Service, namespace: ingress, name: controller}]
---
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec: {sidecar: {maxDataPlaneConnections: 7}}
"""


def test_unenforced_policy_is_a_warning(lint: Lint, run: Run, tmp_path: Path) -> None:
    """Each object is named, and `--strict` fails."""
    assert lint(unenforced=UNENFORCED) == [
        ("warning", "MW1030", "AccessControl bookstore/front", '"AccessControl"'),
        ("warning", "MW1030", "MeshConfig osm-system/osm-mesh-config", ""),
    ]
    done = run("lint", str(tmp_path / "mesh"), "--strict")
    assert (done.returncode, done.stdout.count("is not enforced by Meshwright: ")) == (1, 2)
    assert done.stdout.endswith("\n2 warnings\n")
    assert "plays no part" not in done.stdout


def _as_kubectl_prints(manifests: list[osm.Manifest]) -> str:
    """Return manifests as one List in the form of `kubectl get -o yaml`, with the API server's fields."""
    added = {
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "resourceVersion": "17",
        "uid": "5d8b6a0e-0000-4000-8000-000000000000",
        "generation": 1,
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {}}}],
    }
    last_applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    items = [
        manifest
        | {"metadata": manifest["metadata"] | added | {"annotations": last_applied}}
        | {"status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}}
        for manifest in manifests
    ]
    return yaml.safe_dump(
        {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    )


CLUSTER = """
- apiVersion: v1
  kind: Service
  metadata: {name: kube-dns, namespace: kube-system}
  spec:
    clusterIP: 10.96.0.10
    ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
    selector: {k8s-app: kube-dns}
- apiVersion: v1
  kind: Service
  metadata: {name: kubernetes, namespace: default}
  spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}
- apiVersion: v1
  kind: Endpoints
  metadata: {name: kubernetes, namespace: default}
  subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{name: https, port: 6443, protocol: TCP}]}]
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  addressType: IPv4
  metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
  endpoints: [{addresses: [192.0.2.1], conditions: {ready: true}}]
  ports: [{name: https, port: 6443, protocol: TCP}]
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: coredns, namespace: kube-system}
  spec: {template: {metadata: {labels: {k8s-app: kube-dns}}, spec: {serviceAccountName: coredns}}}
- apiVersion: v1
  kind: Node
  metadata: {name: one}
"""


def test_objects_of_every_cluster_cause_no_error(lint: Lint) -> None:
    """UDP ports, Endpoints with an equal EndpointSlice, and servers outside the mesh are accepted.

    A differing EndpointSlice is an error.
    """
    manifests = libyaml.load(CLUSTER)
    expected = [
        ("info", "MW1031", "None", '"Node"'),
        ("info", "MW2024", "Service kube-system/kube-dns", "53"),
        ("info", "MW2025", "Service kube-system/kube-dns", "k8s-app=kube-dns"),
        ("warning", "MW1023", "Service kube-system/kube-dns", '"UDP"'),
    ]
    assert lint(cluster=_as_kubectl_prints(manifests)) == expected
    assert lint(cluster=osm.text(manifests[:3]), more=osm.text(manifests[3:])) == expected
    manifests[3]["endpoints"][0]["addresses"] = ["192.0.2.2"]
    assert [item for item in lint(more=osm.text(manifests[3:])) if item[0] == "error"] == [
        ("error", "MW1106", "EndpointSlice default/kubernetes", "")
    ]


def _as_helm_prints(manifests: list[osm.Manifest]) -> str:
    """Return manifests in the form of `helm template`, with comments and empty documents."""
    return "".join(
        f"---\n# Source: demo/templates/{n}.yaml\n{yaml.safe_dump(manifest)}---\n\n---\n# nothing\n"
        for n, manifest in enumerate(manifests)
    )


@pytest.mark.parametrize(
    "written",
    [
        _as_kubectl_prints,
        _as_helm_prints,
        lambda manifests: "\ufeff" + osm.text(manifests).replace("\n", "\r\n"),
        lambda manifests: json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}, indent=2),
    ],
    ids=["kubectl", "helm", "windows", "json"],
)
def test_demo_has_the_same_result_in_every_format(
    lint: Lint, written: Callable[[list[osm.Manifest]], str]
) -> None:
    """Output of kubectl and helm, Windows line ends and JSON cause the same infos as plain manifests."""
    assert lint(demo=written(osm.demo())) == [*GUESSED, *TO_COME]


BESIDE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: traffictargets.access.smi-spec.io}
spec:
  group: access.smi-spec.io
  names: {kind: TrafficTarget, listKind: TrafficTargetList, plural: traffictargets, singular: traffictarget}
  versions: [{name: v1alpha3, served: true, storage: true}]
---
apiVersion: v1
kind: Secret
metadata: {name: database, namespace: bookwarehouse}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: bookwarehouse}
data: {password: aHVudGVyMg==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: bookwarehouse}
data: {settings.yaml: "a: hunter2"}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: store, namespace: bookstore}
spec: {secretName: store}
---
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: TCPRoute
metadata: {name: mysql, namespace: bookwarehouse}
spec: {parentRefs: [{name: gateway}], rules: [{backendRefs: [{name: mysql, port: 3306}]}]}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: bookstore, namespace: bookstore}
spec: {template: {spec: {containers: [{image: a}]}}}
"""
KUSTOMIZATION = "resources:\n- demo.yaml\nnamespace: bookstore\n"


def test_other_objects_beside_policy_are_no_error(lint: Lint, run: Run, tmp_path: Path) -> None:
    """Each unused kind has one info, and a route of a Gateway none.

    Secrets are read for gateways, but their values are not printed. Kustomize's file is skipped.
    """
    result = lint(demo=osm.text(osm.demo()), beside=BESIDE, kustomization=KUSTOMIZATION)
    kinds = [
        "Certificate.cert-manager.io",
        "ConfigMap",
        "CustomResourceDefinition.apiextensions.k8s.io",
        "Service.serving.knative.dev",
    ]
    others = [("info", "MW1031", "None", f'"{kind}"') for kind in kinds]
    assert result == [*others, *GUESSED, *TO_COME]
    done = run("lint", str(tmp_path / "mesh"))
    assert 'kind is "ConfigMap": Meshwright uses only ConfigMaps with CA certificates' in done.stdout
    assert "hunter2" not in done.stdout
    assert "aHVudGVyMg" not in done.stdout
