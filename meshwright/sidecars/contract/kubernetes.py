"""A pod in JSON, as far as it is looked at or made here (Kubernetes API, core/v1); all else stays as it is.

A pod comes from an API server that has checked it, so that what is there is of its type; nothing must be.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypedDict

from meshwright.sidecars.layout import ProbeKind

ByNetwork = Literal["httpGet", "tcpSocket", "grpc"]
BY_NETWORK: Final[tuple[ByNetwork, ...]] = ("httpGet", "tcpSocket", "grpc")
"""The ways of a probe that are calls; the other is a command in the container."""


class Metadata(TypedDict, total=False):
    """Who an object is, and what is said of it."""

    name: str
    generateName: str
    uid: str
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]


class HttpGet(TypedDict, total=False):
    """A probe's request; so are, with fewer fields, its TCP connection and its gRPC call."""

    path: str
    port: int | str
    scheme: str
    host: str
    httpHeaders: list[dict[str, str]]
    service: str


class Probe(TypedDict, total=False):
    """A container's probe: one of the ways to ask, and how often."""

    httpGet: HttpGet
    tcpSocket: HttpGet
    grpc: HttpGet
    exec: dict[str, list[str]]
    timeoutSeconds: int
    periodSeconds: int
    failureThreshold: int
    initialDelaySeconds: int


class Hook(TypedDict, total=False):
    """What a kubelet does when a container begins or is to end."""

    exec: dict[str, list[str]]
    httpGet: HttpGet
    tcpSocket: HttpGet
    sleep: dict[str, int]


class Lifecycle(TypedDict, total=False):
    """A container's hooks."""

    postStart: Hook
    preStop: Hook


class ContainerPort(TypedDict, total=False):
    """A port that a container says it has."""

    name: str
    containerPort: int
    protocol: str


class Capabilities(TypedDict, total=False):
    """Rights that a process has or has not besides those of its user."""

    add: list[str]
    drop: list[str]


class SecurityContext(TypedDict, total=False):
    """As whom processes run."""

    runAsUser: int
    runAsGroup: int
    runAsNonRoot: bool
    allowPrivilegeEscalation: bool
    readOnlyRootFilesystem: bool
    capabilities: Capabilities
    seccompProfile: dict[str, str]


class VolumeMount(TypedDict, total=False):
    """Where a container has a volume."""

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
    """A volume, by its source."""

    name: str
    secret: dict[str, str | int]
    emptyDir: dict[str, str]
    downwardAPI: dict[str, list[dict[str, str | dict[str, str]]]]
    configMap: dict[str, str | list[dict[str, str]]]
    projected: dict[str, list[dict[str, dict[str, str | int]]]]


class PodSecurity(SecurityContext, total=False):
    """As whom the processes of a pod run, and to which group its volumes belong."""

    fsGroup: int


class PodSpec(TypedDict, total=False):
    """What a pod runs."""

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
    """Return what a pod runs; nothing where it does not say."""
    return pod.get("spec", {})


def stays(container: Container) -> bool:
    """Say whether one of a pod's init containers is a native sidecar: it runs on, and may be probed."""
    return container.get("restartPolicy") == "Always"


def probe_of(container: Container, kind: ProbeKind) -> Probe | None:
    """Return a container's probe of a kind."""
    match kind:
        case ProbeKind.LIVENESS:
            return container.get("livenessProbe")
        case ProbeKind.READINESS:
            return container.get("readinessProbe")
        case ProbeKind.STARTUP:
            return container.get("startupProbe")


def put_probe(container: Container, kind: ProbeKind, probe: Probe) -> None:
    """Give a container a probe of a kind."""
    match kind:
        case ProbeKind.LIVENESS:
            container["livenessProbe"] = probe
        case ProbeKind.READINESS:
            container["readinessProbe"] = probe
        case ProbeKind.STARTUP:
            container["startupProbe"] = probe
