"""Our own kind and annotations."""

from typing import Final

from meshwright.mesh.workload import DRIVER_ANNOTATION
from meshwright.specs.annotations import (
    CAPTURE,
    EGRESS_SERVICES,
    ESCAPED_SLASHES,
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
_HELD: Final[Meanings] = {ANNOTATIONS: Meaning("Annotations; those named here are read.")}
_DRIVER: Final[Meanings] = {
    f"{ANNOTATIONS}.{DRIVER_ANNOTATION}": Meaning(
        "The sidecar driver; on a Namespace, of its workloads that name none.", "the mesh's", LABEL
    )
}
_EGRESS: Final[Meanings] = {
    f"{ANNOTATIONS}.{EGRESS_SERVICES}": Meaning(
        "The services of which the sidecar is told, no others; `*` is any namespace or any name.",
        "the Namespace's, else all",
        SERVICES,
    )
}

OF_NAMESPACE: Final[Meanings] = {
    **_HELD,
    **_DRIVER,
    **_EGRESS,
    f"{ANNOTATIONS}.{PERMISSIVE}": Meaning(
        "Whether workloads here accept every client of the mesh.", "the mesh's", QUOTED_FLAG
    ),
}
OF_TEMPLATE: Final[Meanings] = {
    **_HELD,
    **_DRIVER,
    **_EGRESS,
    f"{ANNOTATIONS}.{CAPTURE}": Meaning("How inbound connections are captured."),
    f"{ANNOTATIONS}.{IPV6}": Meaning(
        "Whether IPv6 is captured too.", "where the Pod has an address of it", QUOTED_FLAG
    ),
}
OF_POD: Final[Meanings] = {
    **OF_TEMPLATE,
    f"{ANNOTATIONS}.{SERVICE_ANNOTATION}": Meaning(
        "The primary service, in the proxy's common name.", "the ServiceAccount's name", LABEL
    ),
}
OF_SERVICE: Final[Meanings] = {
    **_HELD,
    f"{ANNOTATIONS}.{DNS_ANNOTATION}": Meaning(
        "Names in the DNS whose A and AAAA records are its endpoints: `NAME` or `NAME:PORT`, several with "
        "spaces or commas between them."
    ),
    f"{ANNOTATIONS}.{SRV_ANNOTATION}": Meaning(
        "Names in the DNS whose SRV records are its endpoints; several as above."
    ),
    f"{ANNOTATIONS}.{ESCAPED_SLASHES}": Meaning(
        "What becomes of requests with `%2F` or `%5C` in their path."
    ),
}

WORKLOAD: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several that claim one UUID or listener the oldest has it."),
    "metadata.labels": Meaning("Labels, by which Services select it."),
    **_HELD,
    **_DRIVER,
    **_EGRESS,
    "spec": Meaning("What runs, and how its traffic comes to its sidecar."),
    "spec.address": Meaning("Where peers reach it; no two machines may share it.", form=ADDRESS),
    "spec.otherAddresses": Meaning(
        "Transparent interception: further addresses, as of the other family; peers call it at any of them.",
        form=ADDRESS,
    ),
    "spec.serviceAccount": Meaning(
        "Its identity: the ServiceAccount that policy names. Part of its SPIFFE ID.", "`default`", NAME
    ),
    "spec.service": Meaning(
        "Its primary service, in its proxy's common name.", "the ServiceAccount's name", LABEL
    ),
    "spec.uuid": Meaning("Its sidecar, as in the proxy's common name.", "it has no sidecar", LABEL),
    "spec.ports": Meaning("The ports on which the application can be reached; no two have one number."),
    "spec.ports[].port": Meaning("The number.", instead="number"),
    "spec.ports[].number": Meaning(
        "The same as `port`, of which it takes the place.", "`port` must be there"
    ),
    "spec.ports[].name": Meaning("Its name, which a Service's `targetPort` may say."),
    "spec.ports[].protocol": Meaning("What is spoken there.", "what the Services say that select it"),
    "spec.applicationAddress": Meaning(
        "Explicit interception: where the application listens, while the sidecar has `spec.address`.",
        form=ADDRESS,
    ),
    "spec.upstreams": Meaning("Explicit interception: what the sidecar offers at local addresses."),
    "spec.upstreams[].service": Meaning("The service that is called.", form=SERVICE),
    "spec.upstreams[].service.name": Meaning("Its name.", form=NAME),
    "spec.upstreams[].service.namespace": Meaning("Its namespace.", "the Workload's", LABEL),
    "spec.upstreams[].port": Meaning("The service's port."),
    "spec.upstreams[].address": Meaning(
        "The local address; with its port nobody else's.", "`127.0.0.1`", ADDRESS
    ),
    "spec.upstreams[].localPort": Meaning("The local port.", "what `port` says"),
    "spec.interception": Meaning(
        "Transparent interception: what the machine's rules do. Not beside `applicationAddress`, `upstreams`."
    ),
    "spec.interception.capture": Meaning("How inbound connections are led to the sidecar."),
    "spec.interception.ipv6": Meaning("Whether IPv6 is led there too."),
    "spec.locality": Meaning("Where it runs, as `region/zone/sub-zone` or the beginning of it."),
    "spec.weight": Meaning("Its share of calls, relative to its peers."),
}
