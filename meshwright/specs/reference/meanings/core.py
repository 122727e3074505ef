"""Meanings of the fields of Kubernetes' kinds, as far as a mesh needs them."""

from typing import Final

from meshwright.specs.core.services import TOPOLOGY_ANNOTATIONS
from meshwright.specs.reference.meaning import (
    ADDRESS,
    CLUSTER_IP,
    LABEL,
    NAME,
    PORT_NAME,
    WHATEVER,
    Meaning,
    Meanings,
    under,
)
from meshwright.specs.reference.meanings.own_kinds import OF_NAMESPACE, OF_POD, OF_SERVICE, OF_TEMPLATE
from meshwright.specs.values.protocols import BY_NAME

_ACCOUNT: Final = Meaning("The ServiceAccount, which is the identity.", "`default`", NAME)
_PROTOCOL: Final = Meaning("The transport protocol; ports other than TCP are left out.")
_CONTAINER_PORTS: Final[Meanings] = {
    "ports": Meaning("The ports of the container."),
    "ports[].containerPort": Meaning("The port number."),
    "ports[].name": Meaning("The port's name; a Service's `targetPort` can refer to it."),
    "ports[].protocol": _PROTOCOL,
}
_POD_SPEC: Final[Meanings] = {
    "spec": Meaning("The specification of the Pod."),
    "spec.serviceAccountName": _ACCOUNT,
    "spec.containers": Meaning("The containers; only their ports are read."),
    **under("spec.containers[]", _CONTAINER_PORTS),
    "spec.initContainers": Meaning("The init containers; only the ports of sidecars among them are read."),
    "spec.initContainers[].restartPolicy": Meaning("`Always` for a sidecar, which keeps running."),
    **under("spec.initContainers[]", _CONTAINER_PORTS),
}
_OLDER_ACCOUNT: Final[Meanings] = {
    "spec.serviceAccount": Meaning("An older name of `serviceAccountName`.", form=NAME)
}
_TEMPLATE: Final[Meanings] = {
    "template": Meaning("The Pod template; without a template the object is not used."),
    **under(
        "template",
        {
            "metadata": Meaning("The metadata of the Pods."),
            "metadata.labels": Meaning("The labels of the Pods; Services select Pods by their labels."),
            **OF_TEMPLATE,
            **_POD_SPEC,
            **_OLDER_ACCOUNT,
        },
    ),
}
_SLICE_PORTS: Final[Meanings] = {
    "ports": Meaning("The ports of all addresses."),
    "ports[].port": Meaning("The port number; a port without a number is left out."),
    "ports[].name": Meaning("The name of the Service's port."),
    "ports[].protocol": _PROTOCOL,
}

_SAID: Final = "is reported by lint (MW2027)"

NAMESPACE: Final[Meanings] = {
    "metadata.name": Meaning("The name of the namespace.", form=LABEL),
    "metadata.labels": Meaning("Labels."),
    **OF_NAMESPACE,
}
SERVICE_ACCOUNT: Final[Meanings] = {}
SERVICE: Final[Meanings] = {
    "metadata.name": Meaning("The name of the object.", form=LABEL),
    "metadata.creationTimestamp": Meaning(
        "The age; if several Services claim the same address, or disagree about a port of a "
        "workload, the oldest has precedence."
    ),
    **OF_SERVICE,
    "spec": Meaning("The ports of the Service, and the selection of its workloads."),
    "spec.type": Meaning("A Service of type `ExternalName` is not used; all other types are treated alike."),
    "spec.clusterIP": Meaning(
        "The IP address; `None` for a headless Service.",
        "an address from the setting `virtual_addresses`",
        CLUSTER_IP,
    ),
    "spec.clusterIPs": Meaning("All IP addresses, if there is one of each family.", form=CLUSTER_IP),
    "spec.publishNotReadyAddresses": Meaning("Whether workloads that are not ready receive requests too."),
    **{
        f"metadata.annotations.{item}": Meaning(f"No effect; `Auto` {_SAID}.", "`Disabled`", WHATEVER)
        for item in TOPOLOGY_ANNOTATIONS
    },
    "spec.internalTrafficPolicy": Meaning(f"No effect; `Local` {_SAID}.", "`Cluster`", WHATEVER),
    "spec.sessionAffinity": Meaning(f"No effect; `ClientIP` {_SAID}.", "`None`", WHATEVER),
    "spec.trafficDistribution": Meaning(f"No effect; any value {_SAID}.", form=WHATEVER),
    "spec.externalIPs": Meaning(f"No effect; any value {_SAID}.", form=WHATEVER),
    "spec.selector": Meaning("The labels of the Service's workloads.", "none; see EndpointSlice"),
    "spec.ports": Meaning("The ports; of two with the same number, the first counts."),
    "spec.ports[].port": Meaning("The port number."),
    "spec.ports[].name": Meaning(
        "The port's name; a name such as `grpc-api` gives the protocol if `appProtocol` is missing."
    ),
    "spec.ports[].targetPort": Meaning(
        "The workloads' port: a number or the name of a port; 0 counts as missing.",
        "the value of `port`",
        PORT_NAME,
    ),
    "spec.ports[].protocol": _PROTOCOL,
    "spec.ports[].appProtocol": Meaning(
        f"The protocol: {', '.join(sorted(BY_NAME))}; any other value means tcp.",
        "by the port's name, then its number",
    ),
    "status": Meaning("The state of the Service's load balancer."),
    "status.loadBalancer": Meaning("The load balancer in front of the Service."),
    "status.loadBalancer.ingress": Meaning("The addresses of a gateway behind the Service.", "none"),
    "status.loadBalancer.ingress[].ip": Meaning("An IP address of the load balancer."),
    "status.loadBalancer.ingress[].hostname": Meaning("A host name of the load balancer."),
}
POD: Final[Meanings] = {
    "metadata.labels": Meaning(
        "The labels; Services select Pods by their labels. The label "
        "`meshwright.dev/proxy-uuid` has the UUID of the sidecar: a DNS label, or "
        "`metadata.uid` for the Pod's own UID."
    ),
    "metadata.creationTimestamp": Meaning(
        "The age; of several equally ready Pods with the same address, the youngest has the address."
    ),
    "metadata.uid": Meaning(
        "The Pod's UID. It is the sidecar's UUID if the label above has the value "
        "`metadata.uid`. A sidecar that joins with a ServiceAccount token must be in the Pod "
        "with this UID.",
    ),
    "metadata.deletionTimestamp": Meaning(
        "The time of deletion; a terminating Pod receives requests only if all workloads of the Service "
        "are unready.",
        "the Pod stays",
        raw=WHATEVER,
    ),
    **OF_POD,
    **_POD_SPEC,
    "spec.hostNetwork": Meaning(
        "Whether the Pod has the address of its node; without a sidecar, this address does "
        "not identify the Pod."
    ),
    **_OLDER_ACCOUNT,
    "spec.nodeName": Meaning("The node of the Pod, for display; a sidecar that joins must run on this node."),
    "status": Meaning("The state of the Pod."),
    "status.phase": Meaning("A Pod that has `Succeeded` or `Failed` is not used."),
    "status.podIP": Meaning("The IP address of the Pod.", "the Pod does not receive requests yet", ADDRESS),
    "status.podIPs": Meaning("All IP addresses, if there is one of each family."),
    "status.podIPs[].ip": Meaning("The IP address.", form=ADDRESS),
    "status.conditions": Meaning(
        "The conditions of the Pod; only `Ready` is read.", "the Pod does not receive requests"
    ),
    "status.conditions[].type": Meaning("The type of the condition."),
    "status.conditions[].status": Meaning("The Pod receives requests only if `Ready` is `True`."),
}
POD_TEMPLATE: Final[Meanings] = _TEMPLATE
CONTROLLER: Final[Meanings] = {
    "spec": Meaning("The specification of the object."),
    **under("spec", _TEMPLATE),
}
SCALED: Final[Meanings] = {
    **CONTROLLER,
    "metadata.ownerReferences": Meaning(
        "The owners; an object with an owner and without replicas is not used.", form=WHATEVER
    ),
    "spec.replicas": Meaning("The number of Pods; only 0 has an effect here.", raw=WHATEVER),
}
CRON_JOB: Final[Meanings] = {
    "spec": Meaning("The specification of the object."),
    "spec.jobTemplate": Meaning("The template of the Jobs."),
    "spec.jobTemplate.spec": Meaning("The specification of the Jobs."),
    **under("spec.jobTemplate.spec", _TEMPLATE),
}
ENDPOINT_SLICE: Final[Meanings] = {
    "metadata.labels": Meaning("The labels; only one is read."),
    "metadata.labels.kubernetes.io/service-name": Meaning("The Service of the EndpointSlice."),
    "addressType": Meaning("The type of the addresses; host names (`FQDN`) are not used."),
    "endpoints": Meaning("The endpoints of the Service."),
    "endpoints[].addresses": Meaning("The addresses of the endpoint, all of one workload.", form=ADDRESS),
    "endpoints[].conditions": Meaning("The state of the endpoint."),
    "endpoints[].conditions.ready": Meaning("Whether the endpoint receives requests."),
    "endpoints[].conditions.terminating": Meaning("Whether the endpoint is terminating."),
    "endpoints[].conditions.serving": Meaning(
        "Whether a terminating endpoint still answers; it then receives requests if all endpoints are "
        "unready."
    ),
    "endpoints[].zone": Meaning("The zone of the endpoint, which is its locality."),
    **_SLICE_PORTS,
}
ENDPOINTS: Final[Meanings] = {
    "subsets": Meaning(
        "The endpoints of the Service of the same name; all subsets must have the same ports."
    ),
    "subsets[].addresses": Meaning("The ready addresses."),
    "subsets[].addresses[].ip": Meaning("The IP address.", form=ADDRESS),
    "subsets[].notReadyAddresses": Meaning("The addresses that are not ready."),
    "subsets[].notReadyAddresses[].ip": Meaning("The IP address.", form=ADDRESS),
    **under("subsets[]", _SLICE_PORTS),
}
