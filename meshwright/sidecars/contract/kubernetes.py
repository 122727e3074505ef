"""Types of the parts of a pod that are read or written here (Kubernetes API, core/v1); other fields are kept.

An API server has validated the pods. Therefore present fields have the right type, but any field may be
missing.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypedDict

from meshwright.sidecars.layout import ProbeKind

ByNetwork = Literal["httpGet", "tcpSocket", "grpc"]
BY_NETWORK: Final[tuple[ByNetwork, ...]] = ("httpGet", "tcpSocket", "grpc")
"""The kinds of probe with a network call; the other kind runs a command in the container."""


class Metadata(TypedDict, total=False):
    """Identity, labels and annotations of a Kubernetes object."""

    name: str
    generateName: str
    uid: str
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]


class HttpGet(TypedDict, total=False):
    """An HTTP probe. TCP and gRPC probes have the same form with fewer fields."""

    path: str
    port: int | str
    scheme: str
    host: str
    httpHeaders: list[dict[str, str]]
    service: str


class Probe(TypedDict, total=False):
    """A container's probe: one kind of call, with times."""

    httpGet: HttpGet
    tcpSocket: HttpGet
    grpc: HttpGet
    exec: dict[str, list[str]]
    timeoutSeconds: int
    periodSeconds: int
    failureThreshold: int
    initialDelaySeconds: int


class Hook(TypedDict, total=False):
    """An action of the kubelet when a container starts or is about to stop."""

    exec: dict[str, list[str]]
    httpGet: HttpGet
    tcpSocket: HttpGet
    sleep: dict[str, int]


class Lifecycle(TypedDict, total=False):
    """A container's hooks: one after the start, one before the stop."""

    postStart: Hook
    preStop: Hook


class ContainerPort(TypedDict, total=False):
    """A port that a container declares, for example `{"name": "metrics", "containerPort": 9090}`."""

    name: str
    containerPort: int
    protocol: str


class Capabilities(TypedDict, total=False):
    """Linux capabilities to add to a container or to drop."""

    add: list[str]
    drop: list[str]


class SecurityContext(TypedDict, total=False):
    """User and privileges of a container's processes."""

    runAsUser: int
    runAsGroup: int
    runAsNonRoot: bool
    allowPrivilegeEscalation: bool
    readOnlyRootFilesystem: bool
    capabilities: Capabilities
    seccompProfile: dict[str, str]


class VolumeMount(TypedDict, total=False):
    """The mount point of a volume in a container."""

    name: str
    mountPath: str
    readOnly: bool


class Container(TypedDict, total=False):
    """A container of a pod."""

    name: str
    image: str
    imagePullPolicy: str
    command: list[str]
    args: list[str]
    env: list[dict[str, str]]
    ports: list[ContainerPort]
    volumeMounts: list[VolumeMount]
    securityContext: SecurityContext
    restartPolicy: str
    resources: Mapping[str, Mapping[str, str]]
    lifecycle: Lifecycle
    livenessProbe: Probe
    readinessProbe: Probe
    startupProbe: Probe


class Volume(TypedDict, total=False):
    """A volume of a pod, by source."""

    name: str
    secret: dict[str, str | int]
    emptyDir: dict[str, str]
    downwardAPI: dict[str, list[dict[str, str | dict[str, str]]]]
    configMap: dict[str, str | list[dict[str, str]]]
    projected: dict[str, list[dict[str, dict[str, str | int]]]]


class PodSecurity(SecurityContext, total=False):
    """User and privileges of all processes of a pod, and the group of the volumes."""

    fsGroup: int


class PodSpec(TypedDict, total=False):
    """Containers, volumes and settings of a pod."""

    containers: list[Container]
    initContainers: list[Container]
    volumes: list[Volume]
    imagePullSecrets: list[dict[str, str]]
    resources: Mapping[str, Mapping[str, str]]
    securityContext: PodSecurity
    dnsPolicy: str
    restartPolicy: str
    hostNetwork: bool
    serviceAccountName: str
    serviceAccount: str
    nodeSelector: dict[str, str]
    os: dict[str, str]


class Pod(TypedDict, total=False):
    """A pod."""

    apiVersion: str
    kind: str
    metadata: Metadata
    spec: PodSpec


def spec_of(pod: Pod) -> PodSpec:
    """Return the spec of a pod; empty if missing."""
    return pod.get("spec", {})


def stays(container: Container) -> bool:
    """Return whether an init container is a native sidecar, which keeps running and may have probes."""
    return container.get("restartPolicy") == "Always"


def probe_of(container: Container, kind: ProbeKind) -> Probe | None:
    """Return a container's probe of a kind, or None if the container lacks one."""
    match kind:
        case ProbeKind.LIVENESS:
            return container.get("livenessProbe")
        case ProbeKind.READINESS:
            return container.get("readinessProbe")
        case ProbeKind.STARTUP:
            return container.get("startupProbe")


def put_probe(container: Container, kind: ProbeKind, probe: Probe) -> None:
    """Set a container's probe of a kind."""
    match kind:
        case ProbeKind.LIVENESS:
            container["livenessProbe"] = probe
        case ProbeKind.READINESS:
            container["readinessProbe"] = probe
        case ProbeKind.STARTUP:
            container["startupProbe"] = probe
