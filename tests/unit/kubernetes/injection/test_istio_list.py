"""Tests of the cases of Istio's injector (pkg/kube/inject/testdata/inject), as far as they apply.

A case is a file of `cases` with a golden file, which `test_by_hand` and `test_injection_cases` each inject
twice; or its refusal is tested; or a table gives the reason why the case does not apply.
`tests/kubernetes/injection/test_inject_output.py` applies all of them to a real API server.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.manifests import TEMPLATES
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import DriverError
from meshwright.sidecars.contract.pod import Placement, PullPolicy, RulesOwner
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.tools import libyaml
from tests.unit.kubernetes.injection.test_by_hand import CASES

SIDECAR: Final = "meshwright-sidecar"

HERE: Final[Mapping[str, str]] = {
    # kinds
    "pod": "kinds/pod",
    "job": "kinds/job",
    "cronjob": "kinds/cronjob",
    "daemonset": "kinds/daemonset",
    "replicaset": "kinds/replicaset",
    "replicationcontroller": "kinds/replicationcontroller",
    "statefulset": "kinds/statefulset",
    "deploymentconfig": "openshift/config",
    "deploymentconfig-with-canonical-service-label": "openshift/config",
    "deploymentconfig-multi": "openshift/listed",
    "list": "kinds/in-a-list-",
    "list-frontend": "kinds/in-a-list-",
    "frontend": "kinds/deployment",
    "hello": "kinds/deployment",
    "hello-multi": "kinds/deployment",
    # identity and security context
    "auth": "kinds/pod",
    "auth.non-default-service-account": "standing/secured",
    "explicit-security-context": "standing/secured",
    "hello-multiport-metrics": "standing/secured",
    "prometheus-scrape": "scraped/merged",
    "prometheus-scrape2": "scraped/merged",
    "enable-core-dump": "overlays/debugged",
    # images and pull secrets
    "hello-proxy-override": "containers/own-image",
    "hello-image-secrets-in-values": "kinds/pod",
    "hello-image-pull-secret": "containers/own-sidecar",
    "hello-multiple-image-secrets": "containers/own-sidecar",
    # traffic
    "traffic-annotations": "traffic/excluded",
    "traffic-annotations-empty-includes": "traffic/nothing-excluded",
    "hello-tproxy": "traffic/tproxy",
    # probes
    "hello-probes": "probes/every-way",
    "hello-readiness": "probes/every-way",
    "hello-probes-with-flag-set-in-annotation": "probes/every-way",
    "https-probes": "probes/every-way",
    "tcp-probes": "probes/every-way",
    "named_port": "probes/every-way",
    "startup_ready_live": "probes/every-way",
    "merge-probers": "probes/every-way",
    "hello-probes-localhost": "standing/probed-alone",
    "one_container": "standing/probed-alone",
    "two_container": "standing/probed-alone",
    "ready_only": "standing/probed-alone",
    "ready_live": "standing/probed-alone",
    "startup_only": "standing/probed-alone",
    "startup_live": "standing/probed-alone",
    # order
    "multi-init": "standing/multi",
    "multi-container": "standing/multi",
    "native-sidecar": "standing/native",
    "native-sidecar-opt-in": "standing/native",
    "native-sidecar-opt-out": "standing/multi-classic",
    "hello.proxyHoldsApplication": "standing/multi-classic",
    # settings of the sidecar by the pod's author
    "proxy-override": "containers/own-sidecar",
    "proxy-override-args": "containers/own-sidecar",
    "proxy-override-args-native": "containers/own-sidecar",
    "user-volume": "containers/own-sidecar",
    "resource_annotations": "overlays/by-its-author",
    # null removes a field, in an overlay
    "proxy-resources-null": "overlays/debugged",
    "proxy-resources-memory-null": "overlays/debugged",
    "proxy-resources-mixed-null": "overlays/debugged",
    # overlays, in place of templates
    "custom-template": "overlays/debugged",
    "multiple-templates": "overlays/debugged",
}
"""By Istio's name, the file of `cases` and the object in it that has the sidecar."""

LEFT: Final[Mapping[str, str]] = {
    "hello-host-network": "left-out/host-network",
    "hello-host-network-with-ns": "left-out/host-network",
    "hello-ignore": "left-out/label",
    "hello-service": "kinds/a",
    "hello-namespace": "",
}
"""What is left as it is."""

_OLD: Final = ("cronjob", "daemonset", "hello", "job", "native-sidecar", "pod", "replicaset", "statefulset")
CONFIGURED: Final[Mapping[str, dict[str, Any]]] = {
    **{f"{item}-old-version": {"version": (1, 28), "placement": Placement.CLASSIC} for item in _OLD},
    "hello-always": {"always": "Always"},
    "hello-never": {"always": "Never"},
    "hello.yaml.cni": {"by": RulesOwner.CNI},
    "hello.yaml.proxyImageName": {"image": "other:1"},
    "hello.yaml.proxyInitImageName": {"init_image": "other-init:1"},
    "proxy-resources-zero": {"resources": {"requests": {"cpu": "0"}}},
    "proxy-resources-null-no-init": {"resources": {}},
}
"""What the mesh's configuration or the cluster's version makes of a pod."""

REFUSED: Final[Mapping[str, Mapping[str, object]]] = {
    "traffic-annotations-bad-includeipranges": {
        "openservicemesh.io/outbound-ip-range-inclusion-list": "10.0.0.0/33"
    },
    "traffic-annotations-bad-excludeipranges": {"openservicemesh.io/outbound-ip-range-exclusion-list": "bad"},
    "traffic-annotations-wildcards": {"openservicemesh.io/outbound-ip-range-inclusion-list": "*"},
    "traffic-annotations-bad-excludeinboundports": {"openservicemesh.io/inbound-port-exclusion-list": "bad"},
    "traffic-annotations-bad-excludeoutboundports": {
        "openservicemesh.io/outbound-port-exclusion-list": "1,bad"
    },
}
"""By annotations; everything is captured where nothing is said, so that no wildcard is needed."""

NOT_HERE: Final[Mapping[str, tuple[str, ...]]] = {
    "inbound ports are left out, never named: all others are captured": (
        "traffic-annotations-bad-includeinboundports",
        "traffic-params",
        "traffic-params-empty-includes",
    ),
    "there is no per-pod ProxyConfig: what a sidecar is, overlays and its author's container say": (
        "format-duration",
        "hello-probes-noProxyHoldApplication-ProxyConfig",
        "hello-probes-proxyHoldApplication-ProxyConfig",
    ),
    "the application always begins after the proxy has its configuration": (
        "hello-probes.proxyHoldsApplication",
    ),
    "the agent's port is one, and probes always ask it": (
        "hello-probes-with-flag-unset-in-annotation",
        "status_annotations",
        "status_annotations_zeroport",
        "status_params",
    ),
    "a pod without interception has a driver that captures none (docs/extend/drivers.md)": (
        "init-no-intercept-no-native-sidecar",
    ),
    "a pod of nothing but a sidecar is a gateway's, and there are none": ("only-proxy-container",),
    "there are no gateways, no proxyless gRPC and no SPIRE": (
        *("gateway", "gateway-spire", "gateway-with-default-container"),
        *("grpc-agent", "grpc-simple", "sidecar-spire"),
    ),
    "the sidecar runs as one user, which rules go by: another is refused (test_patch)": (
        "proxy-override-runas",
        "proxy-override-runas.yaml.cni",
        "proxy-override-runas.yaml.tproxy",
    ),
    "mTLS is by policy, never by a pod's label or mounted certificates": (
        "hello-mount-mtls-certs",
        "hello-mtls-not-ready",
    ),
    "tracing, FIPS builds and DNS search domains are none of the injector's": (
        "hello-fips-140-3",
        "hello-otel-semconv",
        "hello-template-in-values",
        "hello-tracing-disabled",
    ),
    "a workload has no canonical name: its primary service is one, and refused if it is no DNS label": (
        "truncate-canonical-name-custom-controller-pod",
        "truncate-canonical-name-pod",
    ),
    "rules hold for every interface of a pod alike": (
        *("kubevirtInterfaces", "kubevirtInterfaces_list"),
        *("reroute-virtual-interfaces", "reroute-virtual-interfaces_list"),
    ),
    "the CNI plug-in is chained into the node's own network, and no Multus network is asked for": (
        "hello-cncf-networks",
        "hello-existing-cncf-networks",
        "hello-existing-cncf-networks-json",
    ),
    "OpenShift's own users are not asked for: the sidecar's is its own": (
        "hello-openshift",
        "hello-openshift-custom-injection",
        "hello-openshift-tproxy",
    ),
}
"""By reason."""

NAMES: Final = frozenset(
    {*HERE, *LEFT, *CONFIGURED, *REFUSED, *(name for names in NOT_HERE.values() for name in names)}
)


def objects(file: str, suffix: str = "yaml") -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of `cases`; a List's items are yielded one by one."""
    for item in libyaml.load_all((CASES / f"{file}.{suffix}").read_text("utf-8")):
        yield from item.get("items", [item])


def pod_of(document: dict[str, Any]) -> dict[str, Any] | None:
    """Return the pod or pod template of an object, or None."""
    group = str(document.get("apiVersion", "")).rpartition("/")[0]
    path = TEMPLATES.get((group, str(document.get("kind"))))
    if path is None:
        return None
    for item in path:
        document = document[item]
    return document


def _named(place: str, suffix: str) -> list[dict[str, Any]]:
    file, _, name = place.partition("/")
    result = (
        item
        for item in objects(file, suffix)
        if name in (item.get("metadata", {}).get(k) for k in ("name", "generateName"))
    )
    return list(result)


def _sidecars(pod: dict[str, Any]) -> int:
    spec = pod["spec"]
    return [item["name"] for item in (*spec.get("initContainers", ()), *spec["containers"])].count(SIDECAR)


@pytest.mark.parametrize("name", HERE)
def test_injected_pod_of_istios_list_has_one_sidecar(name: str) -> None:
    """The pods in the golden file of each case have exactly one sidecar."""
    pods = [pod for item in _named(HERE[name], "injected") if (pod := pod_of(item)) is not None]
    assert pods, HERE[name]
    assert [_sidecars(item) for item in pods] == [1] * len(pods)


@pytest.mark.parametrize("name", [name for name, place in LEFT.items() if place])
def test_skipped_case_of_istios_list_is_unchanged(name: str) -> None:
    """The golden file has the same objects as the input."""
    assert _named(LEFT[name], "injected") == _named(LEFT[name], "yaml")


POD: Final[Any] = {"metadata": {"name": "hello"}, "spec": {"containers": [{"name": "hello", "image": "a:1"}]}}
SPACE: Final = NamespaceObject(Namespace("shop"))


@pytest.mark.parametrize("name", CONFIGURED)
def test_configuration_or_cluster_version_applies_to_a_pod(name: str) -> None:
    """Images, pull policy, owner of the rules, resources and placement follow configuration and version.

    A second injection changes no field.
    """
    answer = CONFIGURED[name]
    config = InjectionConfig(
        image=answer.get("image", "proxy:1"),
        init_image=answer.get("init_image", "init:1"),
        pull_policy=PullPolicy(answer.get("always", "IfNotPresent")),
        rules_by=answer.get("by", RulesOwner.INIT_CONTAINER),
        resources=answer.get("resources", {"requests": {"cpu": "50m"}}),
    )
    known = InjectionInputs(config, {"envoy": EnvoyDriver()}, version=answer.get("version"))
    made = injected(known, SPACE, POD).pod
    assert made is not None
    assert injected(known, SPACE, made).pod == made
    spec = made["spec"]
    rules = spec["initContainers"][0]
    is_classic = answer.get("placement") is Placement.CLASSIC
    sidecar = spec["containers"][0] if is_classic else spec["initContainers"][1]
    assert (sidecar["name"], sidecar["image"]) == (SIDECAR, config.image)
    assert (rules["name"], rules["image"]) == ("meshwright-init", config.init_image)
    assert {sidecar["imagePullPolicy"], rules["imagePullPolicy"]} == {config.pull_policy}
    assert [item.get("resources", {}) for item in (rules, sidecar)] == [config.resources] * 2
    has_rights = "add" in rules["securityContext"]["capabilities"]
    assert has_rights is (config.rules_by is RulesOwner.INIT_CONTAINER)


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_annotation_of_istios_list_is_refused(name: str) -> None:
    """The error describes the invalid range or port."""
    (annotation,) = REFUSED[name].items()
    pod: Any = {**POD, "metadata": {"annotations": dict([annotation])}}
    known = InjectionInputs(InjectionConfig(image="proxy:1"), {"envoy": EnvoyDriver()})
    with pytest.raises(DriverError, match=r"outbound range|is not a port number"):
        injected(known, SPACE, pod)


def test_each_case_is_in_one_table() -> None:
    """A case in two tables would have two contradicting expectations."""
    count = len(HERE) + len(LEFT) + len(CONFIGURED) + len(REFUSED) + sum(map(len, NOT_HERE.values()))
    assert count == len(NAMES)
