"""Meanings of the fields of Meshwright's kind Workload, and of Meshwright's annotations."""

from typing import Final

from meshwright.mesh.workload import DRIVER_ANNOTATION
from meshwright.specs.annotations import (
    CAPTURE,
    EGRESS_SERVICES,
    ESCAPED_SLASHES,
    GATEWAY_ANNOTATION,
    IPV6,
    PERMISSIVE,
    SERVICE_ANNOTATION,
)
from meshwright.specs.own.dns import DNS_ANNOTATION, SRV_ANNOTATION
from meshwright.specs.reference.meaning import (
    ADDRESS,
    LABEL,
    NAME,
    QUOTED_FLAG,
    SERVICE,
    SERVICES,
    Meaning,
    Meanings,
)

ANNOTATIONS: Final = "metadata.annotations"
_HELD: Final[Meanings] = {ANNOTATIONS: Meaning("The annotations; only the ones named here are read.")}
_DRIVER: Final[Meanings] = {
    f"{ANNOTATIONS}.{DRIVER_ANNOTATION}": Meaning(
        "The sidecar driver; on a Namespace, the driver of workloads without this annotation.",
        "the mesh's setting",
        LABEL,
    )
}
_EGRESS: Final[Meanings] = {
    f"{ANNOTATIONS}.{EGRESS_SERVICES}": Meaning(
        "The services in the sidecar's configuration; `*` means any namespace or any name.",
        "the Namespace's annotation, else all services",
        SERVICES,
    )
}

OF_NAMESPACE: Final[Meanings] = {
    **_HELD,
    **_DRIVER,
    **_EGRESS,
    f"{ANNOTATIONS}.{PERMISSIVE}": Meaning(
        "Whether workloads of the namespace accept every client of the mesh.",
        "the mesh's setting",
        QUOTED_FLAG,
    ),
}
OF_TEMPLATE: Final[Meanings] = {
    **_HELD,
    **_DRIVER,
    **_EGRESS,
    f"{ANNOTATIONS}.{CAPTURE}": Meaning("How inbound connections are captured."),
    f"{ANNOTATIONS}.{IPV6}": Meaning(
        "Whether IPv6 traffic is captured too.", "true if the Pod has an IPv6 address", QUOTED_FLAG
    ),
}
OF_POD: Final[Meanings] = {
    **OF_TEMPLATE,
    f"{ANNOTATIONS}.{SERVICE_ANNOTATION}": Meaning(
        "The primary service, which is part of the proxy's common name.",
        "the name of the ServiceAccount",
        LABEL,
    ),
    f"{ANNOTATIONS}.{GATEWAY_ANNOTATION}": Meaning(
        "The gateway of the same namespace that the sidecar serves; the Pod has no other container.",
        "the sidecar serves the Pod's application",
        NAME,
    ),
}
OF_SERVICE: Final[Meanings] = {
    **_HELD,
    f"{ANNOTATIONS}.{DNS_ANNOTATION}": Meaning(
        "DNS names with A and AAAA records for the endpoints: `NAME` or `NAME:PORT`, "
        "separated by spaces or commas."
    ),
    f"{ANNOTATIONS}.{SRV_ANNOTATION}": Meaning(
        "DNS names with SRV records for the endpoints, separated by spaces or commas."
    ),
    f"{ANNOTATIONS}.{ESCAPED_SLASHES}": Meaning("The treatment of requests with `%2F` or `%5C` in the path."),
}

WORKLOAD: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; if several Workloads claim the same UUID or listener, the oldest has precedence."
    ),
    "metadata.labels": Meaning("The labels; Services select Workloads by their labels."),
    **_HELD,
    **_DRIVER,
    **_EGRESS,
    "spec": Meaning("The process, and the interception of its traffic."),
    "spec.address": Meaning("The IP address for other workloads; each machine needs its own.", form=ADDRESS),
    "spec.otherAddresses": Meaning(
        "Transparent interception: further addresses, for example of the other family; other "
        "workloads can call all of them.",
        form=ADDRESS,
    ),
    "spec.serviceAccount": Meaning(
        "The ServiceAccount, which is the identity in policies and part of the SPIFFE ID.", "`default`", NAME
    ),
    "spec.service": Meaning(
        "The primary service, which is part of the proxy's common name.",
        "the name of the ServiceAccount",
        LABEL,
    ),
    "spec.uuid": Meaning(
        "The UUID of the sidecar, which is part of the proxy's common name.", "no sidecar", LABEL
    ),
    "spec.gateway": Meaning(
        "The gateway of the same namespace that the proxy serves, at the workload's addresses. Not allowed "
        "beside `ports`, `applicationAddress`, `upstreams` or `interception`.",
        "the sidecar serves an application",
        NAME,
    ),
    "spec.ports": Meaning("The ports of the application, each number only once."),
    "spec.ports[].port": Meaning("The port number.", instead="number"),
    "spec.ports[].number": Meaning(
        "Another name of `port`; only one of the two may be given.", "`port` is required instead"
    ),
    "spec.ports[].name": Meaning("The port's name; a Service's `targetPort` can refer to it."),
    "spec.ports[].protocol": Meaning(
        "The protocol of the port.", "the protocol in the Services that select the Workload"
    ),
    "spec.applicationAddress": Meaning(
        "Explicit interception: the address of the application, while the sidecar listens on `spec.address`.",
        form=ADDRESS,
    ),
    "spec.upstreams": Meaning(
        "Explicit interception: the services that the sidecar offers on local addresses."
    ),
    "spec.upstreams[].service": Meaning("The called service.", form=SERVICE),
    "spec.upstreams[].service.name": Meaning("The name of the service.", form=NAME),
    "spec.upstreams[].service.namespace": Meaning(
        "The namespace of the service.", "the Workload's namespace", LABEL
    ),
    "spec.upstreams[].port": Meaning("The port of the service."),
    "spec.upstreams[].address": Meaning(
        "The local address; address and port must be unique.", "`127.0.0.1`", ADDRESS
    ),
    "spec.upstreams[].localPort": Meaning("The local port.", "the value of `port`"),
    "spec.interception": Meaning(
        "Transparent interception: the rules of the machine. Not allowed beside "
        "`applicationAddress` or `upstreams`."
    ),
    "spec.interception.capture": Meaning("How inbound connections are redirected to the sidecar."),
    "spec.interception.ipv6": Meaning("Whether IPv6 traffic is redirected too."),
    "spec.locality": Meaning("The locality: `region`, `region/zone` or `region/zone/sub-zone`."),
    "spec.weight": Meaning("The share of requests, relative to the other endpoints of the service."),
}
