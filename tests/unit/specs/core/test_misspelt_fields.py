"""Tests of misspelt fields in kinds of Kubernetes: warnings for names similar to fields that are read."""

import pytest

from tests.meshes.reading import reading

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {{name: a}}\nspec: {{clusterIP: None, {}}}"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{{}}}\nstatus: {{podIP: 10.0.0.7{}}}"
SLICE = (
    "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n"
    "metadata: {{name: a, labels: {{kubernetes.io/service-name: b}}}}\n{}"
)
ENDPOINTS = "apiVersion: v1\nkind: Endpoints\nmetadata: {{name: a}}\n{}"
DEPLOYMENT = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\nspec: {{template: {{spec: {{{}}}}}}}"
)


@pytest.mark.parametrize(
    ("text", "field", "near"),
    [
        (SERVICE.format("selectr: {app: a}"), "spec.selectr", "selector"),
        (SERVICE.format("prots: [{port: 80}]"), "spec.prots", "ports"),
        (SERVICE.format("ports: [{port: 80, targetport: 81}]"), "spec.ports[0].targetport", "targetPort"),
        (POD.format("serviceAccountname: b", ""), "spec.serviceAccountname", "serviceAccountName"),
        (POD.format("container: [{}]", ""), "spec.container", "containers"),
        (POD.format("containers: [{port: []}]", ""), "spec.containers[0].port", "ports"),
        (POD.format("", ", Phase: Failed"), "status.Phase", "phase"),
        (DEPLOYMENT.format("contaners: [{}]"), "spec.template.spec.contaners", "containers"),
        (SLICE.format("endpoint: []"), "endpoint", "endpoints"),
        (SLICE.format("endpoints: [{address: [10.0.0.7]}]"), "endpoints[0].address", "addresses"),
        (SLICE.format("endpoints: [{conditions: {Ready: false}}]"), "endpoints[0].conditions.Ready", "ready"),
        (SLICE.format("ports: [{port: 80, protcol: UDP}]"), "ports[0].protcol", "protocol"),
        (ENDPOINTS.format("subset: []"), "subset", "subsets"),
        (ENDPOINTS.format("subsets: [{adresses: []}]"), "subsets[0].adresses", "addresses"),
    ],
)
def test_misspelt_field_is_a_warning_with_the_similar_name(text: str, field: str, near: str) -> None:
    """The object is in force without the field."""
    manifest_reading = reading(text)
    (problem,) = (problem for problem in manifest_reading.problems if problem.code == "MW1028")
    assert (problem.severity, problem.field) == ("warning", field)
    assert problem.expected == f"the mesh does not read this field; did you mean {near}?"
    assert len(manifest_reading.objects) == 1


SERVICE_SPEC = (
    "allocateLoadBalancerNodePorts clusterIP clusterIPs externalIPs externalName externalTrafficPolicy "
    "healthCheckNodePort internalTrafficPolicy ipFamilies ipFamily ipFamilyPolicy loadBalancerClass "
    "loadBalancerIP loadBalancerSourceRanges publishNotReadyAddresses sessionAffinity "
    "sessionAffinityConfig topologyKeys trafficDistribution"
)
POD_SPEC = (
    "activeDeadlineSeconds affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride "
    "imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority "
    "priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName "
    "schedulingGates securityContext setHostnameAsFQDN shareProcessNamespace subdomain "
    "terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes"
)
CONTAINER = (
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name readinessProbe resizePolicy "
    "resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce "
    "terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
POD_STATUS = (
    "allocatedResources conditions containerStatuses ephemeralContainerStatuses "
    "extendedResourceClaimStatus hostIP hostIPs initContainerStatuses message nominatedNodeName "
    "observedGeneration podIPs qosClass reason resize resourceClaimStatuses resources startTime"
)


def _all(names: str) -> str:
    return ", ".join(f"{name}: null" for name in names.split())


@pytest.mark.parametrize(
    "text",
    [
        SERVICE.replace("clusterIP: None, ", "").format(
            f"{_all(SERVICE_SPEC)}, ports: [{{port: 80, nodePort: 30080}}]"
        ),
        POD.format(
            f"{_all(POD_SPEC)}, serviceAccountName: a, serviceAccount: a, containers: "
            f"[{{{_all(CONTAINER)}, ports: [{{containerPort: 80, hostPort: 80, hostIP: ''}}]}}]",
            f", {_all(POD_STATUS)}",
        ),
        SLICE.format(
            "endpoints: [{addresses: [10.0.0.7], hostname: a, nodeName: b, zone: c, hints: {}, "
            "targetRef: {}, deprecatedTopology: {}, topology: {}, "
            "conditions: {ready: true, serving: true, terminating: false}}]\n"
            "ports: [{port: 80, protocol: TCP, name: a, appProtocol: http}]"
        ),
        ENDPOINTS.format(
            "subsets: [{addresses: [{ip: 10.0.0.7, hostname: a, nodeName: b, targetRef: {}}], "
            "notReadyAddresses: [], ports: [{port: 80, appProtocol: http}]}]"
        ),
    ],
)
def test_kubernetes_field_is_never_taken_for_a_misspelt_one(text: str) -> None:
    """The objects have all fields that an API server may write."""
    assert [str(problem) for problem in reading(text).problems if problem.code == "MW1028"] == []
