"""Tests of `meshwright migrate osm`: the result for OSM's manifests, and the generated files."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from meshwright.controller.settings.settings import load
from meshwright.kubernetes.injection.configuration.configuration import read as read_injection
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.origins import InFile
from meshwright.specs.osm.unenforced_policy import UNENFORCED
from meshwright.specs.reader import read
from tests.tools import libyaml
from tests.tools.forked_cli import ROOT, Done
from tests.unit.cli import osm_demo

Run = Callable[..., Done]
Document = dict[str, Any]

OSM: Final = "openservicemesh.io"
SPEC: Final[Document] = {
    "sidecar": {
        "enablePrivilegedInitContainer": True,
        "logLevel": "debug",
        "envoyImage": "envoyproxy/envoy:v1.22",
        "envoyWindowsImage": "envoyproxy/envoy-windows:v1.22",
        "initContainerImage": "openservicemesh/init:v1.2.4",
        "maxDataPlaneConnections": 500,
        "configResyncInterval": "60s",
        "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
        "tlsMinProtocolVersion": "TLSv1_2",
        "tlsMaxProtocolVersion": "TLSv1_3",
        "cipherSuites": ["ECDHE-RSA-AES128-GCM-SHA256"],
        "ecdhCurves": ["X25519"],
        "localProxyMode": "PodIP",
    },
    "traffic": {
        "enableEgress": True,
        "enablePermissiveTrafficPolicyMode": True,
        "outboundIPRangeExclusionList": ["10.1.0.0/16"],
        "outboundIPRangeInclusionList": ["10.0.0.0/8"],
        "outboundPortExclusionList": [6379],
        "inboundPortExclusionList": [9100],
        "networkInterfaceExclusionList": ["eth1"],
        "inboundExternalAuthorization": {"enable": True, "address": "opa.opa.svc", "port": 9191},
    },
    "observability": {
        "osmLogLevel": "warn",
        "enableDebugServer": True,
        "tracing": {"enable": True, "address": "jaeger", "port": 9411, "endpoint": "/api/v2/spans"},
    },
    "certificate": {
        "serviceCertValidityDuration": "12h",
        "certKeyBitSize": 4096,
        "ingressGateway": {"subjectAltNames": ["gateway"], "secret": {"name": "a", "namespace": "b"}},
    },
    "featureFlags": {
        "enableWASMStats": True,
        "enableEgressPolicy": True,
        "enableSnapshotCacheMode": False,
        "enableAsyncProxyServiceMapping": False,
        "enableIngressBackendPolicy": True,
        "enableEnvoyActiveHealthChecks": True,
        "enableRetryPolicy": True,
        "enableMeshRootCertificate": True,
        "enableSPIFFE": True,
    },
}
"""Every field of Open Service Mesh's MeshConfig, asking for something where it can."""
MESH_CONFIG: Final[Document] = {
    "apiVersion": "config.openservicemesh.io/v1alpha2",
    "kind": "MeshConfig",
    "metadata": {"name": "osm-mesh-config", "namespace": "osm-system"},
    "spec": SPEC,
}
REWRITTEN: Final = {
    f"spec.{element}"
    for element in (
        *("sidecar.enablePrivilegedInitContainer", "sidecar.envoyImage", "sidecar.envoyWindowsImage"),
        *("sidecar.initContainerImage", "sidecar.maxDataPlaneConnections", "sidecar.resources"),
        *("observability.osmLogLevel", "certificate.certKeyBitSize", "certificate.ingressGateway"),
    )
}


def namespace(name: str, injection: str = "", **labels: str) -> Document:
    """Return a namespace in the mesh `osm`."""
    annotations = {"openservicemesh.io/sidecar-injection": injection} if injection else {}
    of = {"openservicemesh.io/monitored-by": "osm", **labels}
    metadata = {"name": name, "labels": of, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def deployment(name: str, annotations: Document | None = None, **container: object) -> Document:
    """Return a Deployment in the namespace `shop`."""
    app = {"name": "app", "image": "app:1", **container}
    template = {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [app]}}
    metadata = {"name": name, "namespace": "shop"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"template": template},
    }


@pytest.fixture
def migrate(run: Run, tmp_path: Path) -> Callable[..., Document]:
    """Return a function that migrates objects and returns the report.

    `lost` is true for the expected status 1.
    """

    def typed(*documents: Document, lost: bool = False, more: tuple[str, ...] = ()) -> Document:
        (tmp_path / "osm.yaml").write_text(yaml.safe_dump_all(documents))
        done = run("migrate", "osm", "-f", "osm.yaml", "--json", *more)
        assert done.returncode == int(lost), done
        return dict(json.loads(done.stdout))

    return typed


def standings(report: Document, what: str) -> dict[str, str]:
    """Return the standing of each field of an object."""
    return {
        finding["field"]: finding["standing"] for finding in report["findings"] if finding["what"] == what
    }


def test_each_field_of_a_mesh_config_has_a_standing(migrate: Callable[..., Document]) -> None:
    """The rewritten fields are those of the table.

    The others have the standing that the reader gives them.
    """
    result = standings(migrate(MESH_CONFIG, lost=True), "MeshConfig osm-system/osm-mesh-config")
    fields = {f"spec.{section}.{name}": (section, name) for section, held in SPEC.items() for name in held}
    assert result.pop("metadata.namespace") == "rewritten"
    assert result.keys() == fields.keys()
    assert {item for item, standing in result.items() if standing == "rewritten"} == REWRITTEN
    for path in fields.keys() - REWRITTEN:
        section, name = fields[path]
        value = SPEC[section][name]
        alone = {**MESH_CONFIG, "spec": {section: {name: value}}}
        codes = {problem.code for problem in read(alone, InFile("")).problems}
        expected = "not enforced" if "MW1030" in codes else "not used" if codes else "works"
        assert result[path] == (expected if value else "works"), path
    assert result["spec.sidecar.localProxyMode"] == "not enforced"
    assert set(result.values()) == {"works", "rewritten", "not used", "not enforced"}


def test_written_mesh_config_has_the_same_meaning_and_no_problems(
    migrate: Callable[..., Document],
) -> None:
    """All working fields are kept, except images, because OSM's images have no agent."""
    report = migrate(MESH_CONFIG, lost=True)
    (manifest,) = report["manifests"]
    assert manifest["metadata"] == {"name": "osm-mesh-config", "namespace": "meshwright-system"}
    reading = read(manifest, InFile(""))
    assert reading.problems == ()
    ((_, config),) = reading.objects
    ((_, before),) = read(MESH_CONFIG, InFile("")).objects
    assert isinstance(config, MeshConfig)
    assert isinstance(before, MeshConfig)
    assert (config.egress, config.permissive, config.exclusions) == (True, True, before.exclusions)
    assert config.service_certificate_validity == before.service_certificate_validity
    assert config.sidecar.cipher_suites == before.sidecar.cipher_suites
    assert (config.sidecar.linux_image, config.sidecar.init_image) == ("", "")


def test_written_values_are_accepted_by_chart_server_and_injector(
    migrate: Callable[..., Document], run: Run, tmp_path: Path
) -> None:
    """The values set for server and injector what the MeshConfig set."""
    report = migrate(MESH_CONFIG, namespace("shop", "enabled"), lost=True, more=("--out", "to"))
    values = libyaml.load((tmp_path / "to" / "values.yaml").read_text())
    assert values == report["values"]
    assert run("install", "--print", "--values", "to/values.yaml").returncode == 0
    settings = load({"kubernetes": True, "state": tmp_path, **values["settings"]})
    assert (settings.max_streams, settings.log_level) == (500, "warning")
    assert str(settings.service_certificate_key) == "rsa-4096"
    assert settings.namespace_selector == "openservicemesh.io/monitored-by=osm"
    config = read_injection(values["injection"]["config"], "values.yaml")
    assert (config.mesh, config.resources) == ("osm", SPEC["sidecar"]["resources"])
    overlay = config.overlays[config.default_overlays[0]]
    assert overlay.interception["securityContext"] == {"privileged": True, "allowPrivilegeEscalation": True}


def test_preset_mesh_config_of_osm_s_chart_is_used_without_another(
    migrate: Callable[..., Document],
) -> None:
    """A chart rendered to a directory has only a ConfigMap with JSON, and no MeshConfig yet."""
    spec = {"traffic": {"enableEgress": True}, "certificate": {"certKeyBitSize": 2048}}
    metadata = {"name": "preset-mesh-config", "namespace": "osm-system"}
    presets = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    result = migrate({**presets, "data": {"preset-mesh-config.json": json.dumps(spec)}})
    assert [manifest["spec"] for manifest in result["manifests"]] == [{"traffic": {"enableEgress": True}}]


def test_first_of_several_mesh_configs_is_used_and_others_are_refused(
    migrate: Callable[..., Document],
) -> None:
    """Mixing several MeshConfigs would give settings that no object has."""
    other = {**MESH_CONFIG, "metadata": {"name": "other", "namespace": "elsewhere"}}
    plain = {**MESH_CONFIG, "spec": {"traffic": {"enableEgress": True}}}
    result = migrate(plain, {**other, "spec": {"traffic": {"enableEgress": False}}}, lost=True)
    assert [manifest["spec"] for manifest in result["manifests"]] == [plain["spec"]]
    (answer,) = (finding for finding in result["findings"] if finding["what"] == "MeshConfig elsewhere/other")
    assert (answer["standing"], answer["code"]) == ("refused", "MW2040")
    assert "MeshConfig osm-system/osm-mesh-config is used" in answer["said"]


def test_written_mesh_config_is_not_a_second_one(migrate: Callable[..., Document]) -> None:
    """Another run with the result beside OSM's MeshConfig gives the same report and values."""
    first = migrate(MESH_CONFIG, lost=True)
    (manifest,) = first["manifests"]
    again = migrate(manifest, MESH_CONFIG, lost=True)
    assert (again["manifests"], again["values"]) == (first["manifests"], first["values"])
    alone = standings(migrate(manifest), "MeshConfig meshwright-system/osm-mesh-config")
    assert alone.pop("spec.certificate.ingressGateway") == "rewritten", "the values permit its Secret"
    assert set(alone.values()) == {"works"}


@pytest.mark.parametrize(
    ("given", "what", "field"),
    [
        ({**MESH_CONFIG, "spec": [1]}, "MeshConfig osm-system/osm-mesh-config", "spec"),
        ({**MESH_CONFIG, "metadata": {"name": "../../x"}}, "MeshConfig ../../x", "metadata.name"),
        ({**namespace("shop"), "metadata": {"name": "../x"}}, "", ""),
        (
            {**namespace("shop"), "metadata": {"name": "../x", "labels": {f"{OSM}/monitored-by": "osm"}}},
            "Namespace ../x",
            "metadata.name",
        ),
    ],
)
def test_unreadable_object_is_reported_and_not_written(
    given: Document, what: str, field: str, migrate: Callable[..., Document], tmp_path: Path
) -> None:
    """The object is refused in the report, and no file is written outside the directory."""
    result = migrate(given, lost=bool(what), more=("--out", "to"))
    assert result["manifests"] == []
    assert [*(tmp_path / "to" / "manifests").iterdir()] == []
    refused = {
        (finding["what"], finding["field"])
        for finding in result["findings"]
        if finding["standing"] == "refused"
    }
    assert refused == ({(what, field)} if what else set())


def test_file_of_an_earlier_run_is_reported(run: Run, tmp_path: Path) -> None:
    """The file would be applied with the others, although it may be obsolete."""
    lines = ("migrate", "osm", "-f", "osm.yaml", "--out", "to")
    (tmp_path / "osm.yaml").write_text(yaml.safe_dump(MESH_CONFIG))
    assert run(*lines).stderr == ""
    (tmp_path / "osm.yaml").write_text(yaml.safe_dump(namespace("watched", "enabled")))
    left = "to/manifests/meshconfig-meshwright-system-osm-mesh-config.yaml"
    assert (
        run(*lines).stderr
        == f"{left} is from an earlier run, and will be applied with the others: delete it if it is "
        "obsolete\n"
    )


def test_lists_are_opened_also_with_items_without_a_kind(
    migrate: Callable[..., Document],
) -> None:
    """Lists of kubectl and typed lists of an API server are opened."""
    answer = {"apiVersion": "v1", "kind": "List", "items": [MESH_CONFIG]}
    item = {"metadata": namespace("watched")["metadata"]}
    bare = {"apiVersion": "v1", "kind": "NamespaceList", "metadata": {}, "items": [item]}
    result = migrate(answer, bare, lost=True)
    assert [manifest["kind"] for manifest in result["manifests"]] == ["MeshConfig"]
    assert result["commands"] == ["kubectl label --overwrite namespace watched meshwright.dev/inject=false"]


def test_namespace_without_sidecars_gets_a_label_against_injection(migrate: Callable[..., Document]) -> None:
    """In Meshwright the label of a watched namespace would enable injection, which OSM did not do.

    Explicit choices are kept.
    """
    given = (
        namespace("enabled", "enabled"),
        namespace("disabled", "disabled"),
        namespace("watched"),
        namespace("ignored", "enabled", **{"openservicemesh.io/ignore": "true"}),
        namespace("wrong", "maybe"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
    )
    report = migrate(*given, lost=True)
    result = {finding["what"]: finding["standing"] for finding in report["findings"]}
    assert result.pop("root certificate") == "to do"
    assert result == {
        "Namespace enabled": "works",
        "Namespace disabled": "works",
        "Namespace watched": "rewritten",
        "Namespace ignored": "works",
        "Namespace wrong": "refused",
    }
    assert report["commands"] == ["kubectl label --overwrite namespace watched meshwright.dev/inject=false"]
    assert report["manifests"] == []


def test_namespace_is_labelled_and_not_applied(run: Run, tmp_path: Path) -> None:
    """Applying a Namespace with one label would delete its others, for example those of Pod Security."""
    given = namespace("gitops", team="payments", **{"pod-security.kubernetes.io/enforce": "baseline"})
    (tmp_path / "osm.yaml").write_text(yaml.safe_dump(given))
    done = run("migrate", "osm", "-f", "osm.yaml", "--out", "to")
    assert [*(tmp_path / "to" / "manifests").iterdir()] == []
    assert done.stdout.splitlines()[-2:] == [
        "meshwright install --print --values to/values.yaml | kubectl apply -f -",
        "kubectl label --overwrite namespace gitops meshwright.dev/inject=false",
    ]


def test_overwritten_mesh_config_keeps_its_labels_and_annotations(
    migrate: Callable[..., Document],
) -> None:
    """GitOps tools find an object by these. A MeshConfig in another namespace has none of them."""
    last = "kubectl.kubernetes.io/last-applied-configuration"
    metadata = {"labels": {"app": "mesh"}, "annotations": {"argocd.example/id": "1", last: "{}"}}
    given = {**MESH_CONFIG, "metadata": {**MESH_CONFIG["metadata"], **metadata}, "spec": {}}
    (there,) = migrate(given, more=("--control-plane-namespace", "osm-system"))["manifests"]
    (elsewhere,) = migrate(given)["manifests"]
    assert there["metadata"] == {
        **MESH_CONFIG["metadata"],
        "labels": {"app": "mesh"},
        "annotations": {"argocd.example/id": "1"},
    }
    assert elsewhere["metadata"] == {"name": "osm-mesh-config", "namespace": "meshwright-system"}


def test_two_meshes_need_a_choice(run: Run, tmp_path: Path) -> None:
    """Two meshes are an error without --mesh-name, and the other mesh's pods get no sidecar."""
    other = namespace("other", "enabled", **{"openservicemesh.io/monitored-by": "second"})
    (tmp_path / "two.yaml").write_text(yaml.safe_dump_all([namespace("shop", "enabled"), other]))
    done = run("migrate", "osm", "-f", "two.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "osm, second" in done.stderr
    done = run("migrate", "osm", "-f", "two.yaml", "--mesh-name", "osm", "--json")
    answer = {finding["what"]: finding["said"] for finding in json.loads(done.stdout)["findings"]}
    assert "no sidecar" in answer["Namespace other"]


def test_values_permit_the_gateway_s_secret(
    migrate: Callable[..., Document], run: Run, tmp_path: Path
) -> None:
    """The chart's value grants the right to write this Secret. Without it the gateway gets no certificate."""
    gateway = {"subjectAltNames": ["edge"], "secret": {"name": "gateway-cert", "namespace": "edge"}}
    given = {**MESH_CONFIG, "spec": {"certificate": {"ingressGateway": gateway}}}
    report = migrate(given, more=("--out", "to"))
    assert report["values"]["ingressGateway"] == {"secrets": [gateway["secret"]]}
    (manifest,) = report["manifests"]
    assert manifest["spec"] == given["spec"]
    printed = run("install", "--print", "--values", "to/values.yaml").stdout
    granted = [
        (item["metadata"]["namespace"], rule["resourceNames"])
        for item in libyaml.load_all(printed)
        if item and item["kind"] == "Role"
        for rule in item["rules"]
        if "gateway-cert" in rule.get("resourceNames", ())
    ]
    assert granted
    assert {namespace for namespace, _ in granted} == {"edge"}


OSM_NAME = "default.shop.cluster.local"
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


def ingress(name: str, **annotations: str) -> Document:
    """Return an Ingress for nginx in the namespace `shop`."""
    rules = [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}]
    of = {f"nginx.ingress.kubernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": "shop", "annotations": of}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": {"rules": rules},
    }


def http_proxy(name: str, subject: str) -> Document:
    """Return Contour's HTTPProxy in the namespace `shop`."""
    service = {"name": "web", "port": 80, "validation": {"caSecret": "ca", "subjectName": subject}}
    return {
        "apiVersion": "projectcontour.io/v1",
        "kind": "HTTPProxy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"routes": [{"services": [service]}]},
    }


def test_gateway_that_verifies_osm_s_certificate_name_must_be_changed(
    migrate: Callable[..., Document],
) -> None:
    """OSM's guides use the name of the service account.

    Meshwright's certificates have the names of Services.
    """
    annotation = "metadata.annotations.nginx.ingress.kubernetes.io"
    report = migrate(
        ingress("snippet", configuration_snippet=f'proxy_ssl_name "{OSM_NAME}";'),
        ingress("name", proxy_ssl_name=OSM_NAME),
        ingress("right", proxy_ssl_name="web.shop.svc.cluster.local"),
        ingress("elsewhere", configuration_snippet="proxy_ssl_name www.example.org;"),
        http_proxy("contour", OSM_NAME),
        http_proxy("right", "web.shop.svc.cluster.local"),
    )
    result = {
        (finding["what"], finding["field"]): finding for finding in report["findings"] if finding["field"]
    }
    assert result.keys() == {
        ("Ingress shop/snippet", f"{annotation}/configuration-snippet"),
        ("Ingress shop/name", f"{annotation}/proxy-ssl-name"),
        ("HTTPProxy shop/contour", "spec.routes[0].services[0].validation.subjectName"),
    }
    assert {item["standing"] for item in result.values()} == {"to do"}
    assert all("web.shop.svc.cluster.local" in item["do"] for item in result.values())


def test_policy_without_effect_behind_another_is_not_enforced(migrate: Callable[..., Document]) -> None:
    """A canary by header behind a split for all requests is reported, also without a namespace."""
    group = {"apiVersion": "specs.smi-spec.io/v1alpha4", "kind": "HTTPRouteGroup"}
    any_get = {
        **group,
        "metadata": {"name": "any"},
        "spec": {"matches": [{"name": "any", "methods": ["GET"]}]},
    }
    canary = {"name": "canary", "methods": ["GET"], "headers": [{"version": "v2"}]}
    by_header = {**group, "metadata": {"name": "canary"}, "spec": {"matches": [canary]}}

    def split(name: str, match: str, backend: str) -> Document:
        matches = [{"kind": "HTTPRouteGroup", "name": match}]
        spec = {"service": "web", "matches": matches, "backends": [{"service": backend, "weight": 100}]}
        head = {"apiVersion": "split.smi-spec.io/v1alpha4", "kind": "TrafficSplit"}
        return {**head, "metadata": {"name": name}, "spec": spec}

    services = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": item},
            "spec": {"selector": {"app": item}, "ports": [{"name": "http", "port": 80}]},
        }
        for item in ("web", "web-v1", "web-v2")
    ]
    splits = (split("a-stable", "any", "web-v1"), split("b-canary", "canary", "web-v2"))
    report = migrate(any_get, by_header, *services, *splits, lost=True)
    result = {
        finding["what"]: (finding["standing"], finding["code"])
        for finding in report["findings"]
        if finding["what"].startswith("TrafficSplit")
    }
    assert result == {
        "TrafficSplit a-stable": ("works", ""),
        "TrafficSplit b-canary": ("not enforced", "MW2018"),
    }


def test_pods_are_judged_by_the_injector(migrate: Callable[..., Document]) -> None:
    """Pods with the old sidecar must be recreated, and Pods that cannot get a new one are refused."""
    old = {"name": "old", "namespace": "shop", "labels": {"osm-proxy-uuid": "x"}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "old-1", "uid": "u", "controller": True}
    ports = "openservicemesh.io/outbound-port-exclusion-list"
    report = migrate(
        namespace("shop", "enabled"),
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**old, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "app", "image": "a"}]},
        },
        deployment("plain"),
        deployment("excluding", {ports: "6379"}),
        deployment("wrong", {ports: "redis"}),
        deployment("same-user", securityContext={"runAsUser": 1500}),
        deployment("scraped", {"openservicemesh.io/sidecar-resource-limits-cpu": "1"}),
        lost=True,
    )
    result = {(finding["what"], finding["field"]): finding for finding in report["findings"]}
    assert result["Pod shop/old", ""]["standing"] == "to do"
    assert "ReplicaSet old-1" in result["Pod shop/old", ""]["do"]
    assert ("Deployment shop/plain", "") not in result
    assert result["Deployment shop/excluding", ""]["standing"] == "works"
    assert result["Deployment shop/wrong", ""]["standing"] == "refused"
    assert ports in result["Deployment shop/wrong", ""]["said"]
    assert result["Deployment shop/same-user", ""]["standing"] == "refused"
    unread = "metadata.annotations.openservicemesh.io/sidecar-resource-limits-cpu"
    assert result["Deployment shop/scraped", unread]["standing"] == "not used"


def test_standing_of_policy_is_that_of_its_reader(migrate: Callable[..., Document]) -> None:
    """Each known but unsupported kind is not enforced; SMI objects work or are refused."""
    unenforced = [
        {
            "apiVersion": f"{kind.group}/v1alpha1",
            "kind": kind.name,
            "metadata": {"name": "a", "namespace": "b"},
        }
        for kind in sorted(UNENFORCED)
    ]
    split = {"service": "a", "backends": [{"service": "b", "weight": 1}]}
    works = {"apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit", "spec": split}
    refused = {"apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit", "spec": {"service": "a"}}
    metadata = {"namespace": "shop"}
    report = migrate(
        *unenforced,
        {**works, "metadata": {**metadata, "name": "works"}},
        {**refused, "metadata": {**metadata, "name": "refused"}},
        lost=True,
    )
    result = {finding["what"]: (finding["standing"], finding["code"]) for finding in report["findings"]}
    for kind in UNENFORCED:
        assert result[f"{kind.name} b/a"] == ("not enforced", "MW1030")
    assert result["TrafficSplit shop/works"] == ("works", "")
    assert result["TrafficSplit shop/refused"][0] == "refused"


def test_published_osm_demo_is_migrated_without_loss(
    migrate: Callable[..., Document],
) -> None:
    """Only fields of the MeshConfig are unused; namespaces, workloads and policies are kept."""
    report = migrate(*osm_demo.demo(), libyaml.load(osm_demo.MESH_CONFIG), lost=True)
    lost = {
        finding["what"]
        for finding in report["findings"]
        if finding["standing"] in ("refused", "not enforced")
    }
    assert lost == set()
    unused = {finding["what"] for finding in report["findings"] if finding["standing"] == "not used"}
    assert unused <= {"MeshConfig osm-system/osm-mesh-config", "MeshConfig osm-mesh-config"}


def test_remains_of_osm_must_be_removed(migrate: Callable[..., Document]) -> None:
    """The control plane, its webhooks and definitions with its conversion webhook have a next step."""
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "osm-bootstrap"}}}}
    spec = {"group": "config.openservicemesh.io", "conversion": conversion}
    webhook = {"name": "osm-inject.k8s.io"}
    given: tuple[Document, ...] = (
        {**deployment("osm-controller"), "metadata": {"name": "osm-controller", "namespace": "osm-system"}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
        | {"metadata": {"name": "osm-webhook-osm"}, "webhooks": [webhook]},
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        | {"metadata": {"name": "meshconfigs.config.openservicemesh.io"}, "spec": spec},
    )
    result = {finding["what"]: finding for finding in migrate(*given)["findings"]}
    assert {item["standing"] for item in result.values()} == {"to do"}
    assert all(item["do"] for item in result.values())
    assert len(result) == len(given) + 1


def test_migration_page_shows_the_program_s_output(run: Run, tmp_path: Path) -> None:
    """The output in docs/start/from-osm.md is that for the objects on the page."""
    page = (ROOT / "docs" / "start" / "from-osm.md").read_text("utf-8")
    (manifests,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ((command, shown),) = re.findall(
        r"^```console\n\$ meshwright (.*?)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    (tmp_path / "mesh.yaml").write_text(manifests)
    done = run(*command.split())
    assert done.returncode == 1
    assert [line.rstrip() for line in done.stdout.splitlines()] == shown.splitlines()
