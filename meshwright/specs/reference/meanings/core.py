"""Kubernetes' kinds: what a mesh needs of them."""

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

_ACCOUNT: Final = Meaning("The ServiceAccount: the identity.", "`default`", NAME)
_PROTOCOL: Final = Meaning("The transport; a port that is not TCP is left out.")
_CONTAINER_PORTS: Final[Meanings] = {
    "ports": Meaning("Where they listen."),
    "ports[].containerPort": Meaning("The number."),
    "ports[].name": Meaning("Its name, which a Service's `targetPort` may say."),
    "ports[].protocol": _PROTOCOL,
}
_POD_SPEC: Final[Meanings] = {
    "spec": Meaning("What runs."),
    "spec.serviceAccountName": _ACCOUNT,
    "spec.containers": Meaning("The containers, for their ports."),
    **under("spec.containers[]", _CONTAINER_PORTS),
    "spec.initContainers": Meaning("The containers that run first, for the ports of those that stay."),
    "spec.initContainers[].restartPolicy": Meaning("`Always` for one that stays: a sidecar."),
    **under("spec.initContainers[]", _CONTAINER_PORTS),
}
_OLDER_ACCOUNT: Final[Meanings] = {
    "spec.serviceAccount": Meaning("An older name of `serviceAccountName`.", form=NAME)
}
_TEMPLATE: Final[Meanings] = {
    "template": Meaning("What pods are made of; without it nothing is known of them."),
    **under(
        "template",
        {
            "metadata": Meaning("What is said of its pods."),
            "metadata.labels": Meaning("Their labels, by which Services select them."),
            **OF_TEMPLATE,
            **_POD_SPEC,
            **_OLDER_ACCOUNT,
        },
    ),
}
_SLICE_PORTS: Final[Meanings] = {
    "ports": Meaning("The ports of all addresses."),
    "ports[].port": Meaning("The number; a port without one is left out."),
    "ports[].name": Meaning("The name of the Service's port."),
    "ports[].protocol": _PROTOCOL,
}

_SAID: Final = "lint says (MW2027)"

NAMESPACE: Final[Meanings] = {
    "metadata.name": Meaning("The namespace.", form=LABEL),
    "metadata.labels": Meaning("Labels."),
    **OF_NAMESPACE,
}
SERVICE_ACCOUNT: Final[Meanings] = {}
SERVICE: Final[Meanings] = {
    "metadata.name": Meaning("The object's name.", form=LABEL),
    "metadata.creationTimestamp": Meaning("Of several Services that claim the same the oldest has it."),
    **OF_SERVICE,
    "spec": Meaning("How it is called, and who stands behind it."),
    "spec.type": Meaning("Of an `ExternalName` nothing is made; all others are the same here."),
    "spec.clusterIP": Meaning(
        "Its address; `None` for a headless Service.", "one of the setting `virtual_addresses`", CLUSTER_IP
    ),
    "spec.clusterIPs": Meaning("All its addresses, where it has one of each family.", form=CLUSTER_IP),
    "spec.publishNotReadyAddresses": Meaning("Whether calls go to workloads that are not ready as well."),
    **{
        f"metadata.annotations.{each}": Meaning(f"Has no effect; `Auto` {_SAID}.", "`Disabled`", WHATEVER)
        for each in TOPOLOGY_ANNOTATIONS
    },
    "spec.internalTrafficPolicy": Meaning(f"Has no effect; `Local` {_SAID}.", "`Cluster`", WHATEVER),
    "spec.sessionAffinity": Meaning(f"Has no effect; `ClientIP` {_SAID}.", "`None`", WHATEVER),
    "spec.trafficDistribution": Meaning(f"Has no effect, which {_SAID}.", form=WHATEVER),
    "spec.externalIPs": Meaning(f"Have no effect, which {_SAID}.", form=WHATEVER),
    "spec.selector": Meaning("The labels of the workloads behind it.", "nobody; see EndpointSlice"),
    "spec.ports": Meaning("Its ports; of two with one number the first counts."),
    "spec.ports[].port": Meaning("The number."),
    "spec.ports[].name": Meaning("Its name; one such as `grpc-api` says the protocol, after `appProtocol`."),
    "spec.ports[].targetPort": Meaning(
        "The workloads' port: a number, or a port's name; 0 is none.", "what `port` says", PORT_NAME
    ),
    "spec.ports[].protocol": _PROTOCOL,
    "spec.ports[].appProtocol": Meaning(
        f"What is spoken: {', '.join(sorted(BY_NAME))}; another is tcp.", "by the name, then the number"
    ),
}
POD: Final[Meanings] = {
    "metadata.labels": Meaning(
        "Labels, by which Services select it; `meshwright.dev/proxy-uuid` is its sidecar's UUID, a DNS "
        "label, or `metadata.uid`: its own UID."
    ),
    "metadata.creationTimestamp": Meaning(
        "Of several equally ready Pods with one address the youngest has it."
    ),
    "metadata.uid": Meaning(
        "Its UID, which is its sidecar's UUID where that label says so; who joins by its ServiceAccount's "
        "token must be this Pod.",
    ),
    "metadata.deletionTimestamp": Meaning(
        "When it is to end; it is called only where nobody behind the Service is ready.",
        "it stays",
        raw=WHATEVER,
    ),
    **OF_POD,
    **_POD_SPEC,
    "spec.hostNetwork": Meaning(
        "Whether it has its machine's address; without a sidecar, that tells nobody who answers there."
    ),
    **_OLDER_ACCOUNT,
    "spec.nodeName": Meaning("The node that it runs on, for people to see; who joins must run there."),
    "status": Meaning("What became of it."),
    "status.phase": Meaning("One that has `Succeeded` or `Failed` is not used."),
    "status.podIP": Meaning("Where it is reached.", "it is not called yet", ADDRESS),
    "status.podIPs": Meaning("All its addresses, where it has one of each family."),
    "status.podIPs[].ip": Meaning("The address.", form=ADDRESS),
    "status.conditions": Meaning("How it is; of its conditions `Ready` is read.", "it gets no calls"),
    "status.conditions[].type": Meaning("Which one."),
    "status.conditions[].status": Meaning("With anything but `True`, a Pod gets no calls."),
}
POD_TEMPLATE: Final[Meanings] = _TEMPLATE
CONTROLLER: Final[Meanings] = {"spec": Meaning("What is run."), **under("spec", _TEMPLATE)}
SCALED: Final[Meanings] = {
    **CONTROLLER,
    "metadata.ownerReferences": Meaning(
        "What made it; with that and no replicas it is not used.", form=WHATEVER
    ),
    "spec.replicas": Meaning("How many pods; only 0 means something here.", raw=WHATEVER),
}
CRON_JOB: Final[Meanings] = {
    "spec": Meaning("What is run."),
    "spec.jobTemplate": Meaning("What its Jobs are made of."),
    "spec.jobTemplate.spec": Meaning("What is run."),
    **under("spec.jobTemplate.spec", _TEMPLATE),
}
ENDPOINT_SLICE: Final[Meanings] = {
    "metadata.labels": Meaning("Labels; one is read."),
    "metadata.labels.kubernetes.io/service-name": Meaning("The Service it belongs to."),
    "addressType": Meaning("What its addresses are; host names (`FQDN`) are not used."),
    "endpoints": Meaning("Who stands behind the Service."),
    "endpoints[].addresses": Meaning("The addresses, all of one workload.", form=ADDRESS),
    "endpoints[].conditions": Meaning("How it is."),
    "endpoints[].conditions.ready": Meaning("Whether it takes calls."),
    "endpoints[].conditions.terminating": Meaning("Whether it is about to end."),
    "endpoints[].conditions.serving": Meaning(
        "Whether one that is about to end still answers; it is called where nobody is ready."
    ),
    "endpoints[].zone": Meaning("The zone it is in, which becomes its locality."),
    **_SLICE_PORTS,
}
ENDPOINTS: Final[Meanings] = {
    "subsets": Meaning("Who stands behind the Service of the same name; all have the same ports."),
    "subsets[].addresses": Meaning("Who is ready."),
    "subsets[].addresses[].ip": Meaning("The address.", form=ADDRESS),
    "subsets[].notReadyAddresses": Meaning("Who is not."),
    "subsets[].notReadyAddresses[].ip": Meaning("The address.", form=ADDRESS),
    **under("subsets[]", _SLICE_PORTS),
}
