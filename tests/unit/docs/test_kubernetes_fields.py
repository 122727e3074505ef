"""Tests of docs/policy/kubernetes-fields.md: every field of Kubernetes' API once, with the right verdict."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "policy" / "kubernetes-fields.md").read_text("utf-8")
REFERENCE: Final = (ROOT / "docs" / "policy" / "reference.md").read_text("utf-8")
CODES: Final = (ROOT / "docs" / "debug" / "codes.md").read_text("utf-8")
VERDICTS: Final = {"obeyed", "without effect, reported", "without effect", "irrelevant", "irrelevant here"}

_PORT: Final = "name protocol appProtocol port"
_CONTAINER: Final = (
    "name image command args workingDir envFrom env resources resizePolicy restartPolicy restartPolicyRules "
    "volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath "
    "terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty"
)
API: Final[Mapping[str, Mapping[str, str]]] = {
    "Service": {
        "spec.": "selector clusterIP clusterIPs type externalIPs sessionAffinity loadBalancerIP "
        "loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort "
        "publishNotReadyAddresses sessionAffinityConfig ipFamilies ipFamilyPolicy "
        "allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution",
        "spec.ports[].": f"{_PORT} targetPort nodePort",
        "status.": "conditions",
        "status.loadBalancer.ingress[].": "ip hostname ipMode ports",
    },
    "EndpointSlice": {
        "": "addressType",
        "endpoints[].": "addresses hostname targetRef deprecatedTopology nodeName zone",
        "endpoints[].conditions.": "ready serving terminating",
        "endpoints[].hints.": "forZones forNodes",
        "ports[].": _PORT,
    },
    "Endpoints": {
        "subsets[].addresses[].": "ip hostname nodeName targetRef",
        "subsets[].notReadyAddresses[].": "ip",
        "subsets[].ports[].": _PORT,
    },
    "Pod": {
        "spec.": "volumes ephemeralContainers restartPolicy terminationGracePeriodSeconds "
        "activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount "
        "automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace "
        "securityContext imagePullSecrets hostname subdomain affinity schedulerName tolerations hostAliases "
        "priorityClassName priority dnsConfig readinessGates runtimeClassName enableServiceLinks "
        "preemptionPolicy overhead topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates "
        "resourceClaims resources hostnameOverride workloadRef schedulingGroup",
        "spec.containers[].": _CONTAINER,
        "spec.containers[].ports[].": "name hostPort containerPort protocol hostIP",
        "spec.initContainers[].": "restartPolicy",
        "spec.initContainers[].ports[].": "name containerPort protocol",
        "status.": "observedGeneration phase message reason nominatedNodeName hostIP hostIPs podIP startTime "
        "initContainerStatuses containerStatuses qosClass ephemeralContainerStatuses resize "
        "resourceClaimStatuses extendedResourceClaimStatus allocatedResources resources "
        "nodeAllocatableResourceClaimStatuses",
        "status.podIPs[].": "ip",
        "status.conditions[].": "type observedGeneration status lastProbeTime lastTransitionTime reason "
        "message",
    },
}
"""Fields of core/v1 and discovery/v1 of Kubernetes 1.36, without apiVersion, kind and metadata."""


@cache
def page(kind: str) -> tuple[tuple[str, str], ...]:
    """Return each field of a kind on the page, and its verdict."""
    section = re.search(rf"^## {kind}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    return tuple(_rows(section[1]))


def _rows(section: str) -> Iterator[tuple[str, str]]:
    for line in re.findall(r"^\| (`.*) \|$", section, re.MULTILINE):
        names, verdict, _ = line.split(" | ", 2)
        for name in re.findall(r"`([^`]*)`", names):
            yield name, verdict


def read_fields(kind: str) -> set[str]:
    """Return the fields that the reader of a kind uses, from docs/policy/reference.md."""
    section = re.search(rf"^## {kind}\n(.*?)(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert section is not None
    every = re.findall(r"^\| `([^`]*)` \|", section[1], re.MULTILINE)
    inside = {item.rpartition(".")[0].removesuffix("[]") for item in every}
    ours = ("metadata.annotations.meshwright.dev/", "metadata.annotations.openservicemesh.io/")
    return {item for item in every if item not in inside and not item.startswith(ours)}


@pytest.mark.parametrize("kind", API)
def test_every_field_of_the_kubernetes_api_has_one_row(kind: str) -> None:
    """No field is missing, duplicated or invented."""
    wanted = Counter(f"{place}{name}" for place, names in API[kind].items() for name in names.split())
    assert Counter(name for name, _ in page(kind) if not name.startswith("metadata.")) == wanted


@pytest.mark.parametrize("kind", API)
def test_fields_read_are_obeyed_or_reported_and_no_others(kind: str) -> None:
    """A field that a reader uses has an effect, or its missing effect is reported."""
    effective = {name for name, verdict in page(kind) if verdict == "obeyed" or "reported (MW" in verdict}
    labels = {"metadata.labels", "metadata.annotations"}
    assert effective - labels == read_fields(kind) - labels


@pytest.mark.parametrize("kind", API)
def test_verdicts_and_codes_on_the_page_are_known(kind: str) -> None:
    """Verdicts are those of the page's introduction, and a named code exists."""
    for name, verdict in page(kind):
        match = re.fullmatch(r"(.*?)(?: \((MW\d+)\))?", verdict)
        assert match is not None
        assert match[1] in VERDICTS, name
        assert match[2] is None or f"| {match[2]} |" in CODES, name
