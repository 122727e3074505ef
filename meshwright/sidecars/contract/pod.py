"""Inputs of a driver's `patch`: the pod, and all further data about the pod and the mesh."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from certs.keys.material import ProxyCertificate
from meshwright.mesh.config import Exclusions, MeshConfig
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace
from meshwright.mesh.workload import Transparent
from meshwright.sidecars.contract.kubernetes import Pod, Probe
from meshwright.sidecars.contract.selection import Selection
from meshwright.sidecars.layout import ENROLMENT_PORT, RENEWAL_PORT, ProbeKind


class PodOs(enum.StrEnum):
    """Operating system of a pod's containers, as spelled by Kubernetes (`kubernetes.io/os`)."""

    LINUX = "linux"
    WINDOWS = "windows"


class PullPolicy(enum.StrEnum):
    """Pull policy of the sidecar's images."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class Placement(enum.StrEnum):
    """Position of the sidecar in a pod.

    NATIVE: an init container with `restartPolicy: Always` (Kubernetes 1.29). The sidecar is ready before
    other containers start, ends after the last of them, and does not keep a Job from completing. CLASSIC: the
    first of the containers.
    """

    NATIVE = "native"
    CLASSIC = "classic"


class RulesOwner(enum.StrEnum):
    """The party that sets the rules for redirecting a pod's traffic through the proxy.

    INIT_CONTAINER: an init container of the pod, which needs NET_ADMIN. CNI: the node, before any container
    starts; the init container then only verifies the rules, without privileges.
    """

    INIT_CONTAINER = "init-container"
    CNI = "cni"


@dataclass(frozen=True, slots=True)
class TokenEnrolment:
    """Enrolment of a pod's agent by its ServiceAccount token, without a Secret.

    The ports belong to the control plane's Service for joining and renewal. The agent verifies the control
    plane by `roots` (PEM), which are then written into the pod, or else by a ConfigMap of the pod's
    namespace.
    """

    enrolment_port: int = ENROLMENT_PORT
    renewal_port: int = RENEWAL_PORT
    roots: bytes = b""
    roots_config_map: str = "meshwright-roots"


@dataclass(frozen=True, slots=True)
class Overlay:
    """A change of the injected containers and volumes, by strategic merge patches."""

    name: str
    sidecar: Mapping[str, object] = field(default_factory=dict)
    interception: Mapping[str, object] = field(default_factory=dict)
    volumes: tuple[Mapping[str, object], ...] = ()


class KubernetesClient(Protocol):
    """The part of the Kubernetes API that a driver may need. `patch` itself never calls the API."""

    async def create(self, manifest: Mapping[str, object]) -> None:
        """Create a Kubernetes object from a manifest."""


@dataclass(frozen=True, slots=True)
class OriginalProbe:
    """A probe as the pod's author wrote it."""

    container: str
    kind: ProbeKind
    probe: Probe


@dataclass(frozen=True, slots=True)
class InjectorContext:
    """The inputs of a driver's `patch`.

    - `proxy` is the common name of the proxy's certificate, with its UUID. None means the pod's own UID,
      which exists only after the pod's creation.
    - `selection` has the images of the sidecar and the port of the control plane
      (`meshwright.sidecars.contract.selection`).
    - `joining` is None if a certificate is issued for the pod. `bootstrap_certificate` and `trust_bundle`
      then reach the sidecar in a Secret, never in the pod.
    - `kubernetes` is None without a cluster.
    - `original_probes` are the probes before any change (`meshwright.sidecars.injection.probes.originals`).
    - `overlays` are applied to the sidecar in their order. `reason` explains why the pod gets a sidecar.
    - `scraped`: the pod gets annotations for Prometheus.
    - `ipv6_by_address`: IPv6 is intercepted if the pod gets an IPv6 address, which is not known yet.
    - `dry_run`: only the pod is made.
    - `gateway`: the gateway that the sidecar serves; empty if it serves the pod's application.
    """

    pod: Pod
    os: PodOs
    namespace: Namespace
    mesh_name: str
    control_plane_namespace: Namespace
    proxy: ProxyName | None
    config: MeshConfig
    selection: Selection
    bootstrap_certificate: ProxyCertificate | None = None
    trust_bundle: bytes = field(default=b"", repr=False)
    kubernetes: KubernetesClient | None = None
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    interception: Transparent = field(default_factory=Transparent)
    rules_by: RulesOwner = RulesOwner.INIT_CONTAINER
    exclusions: Exclusions = field(default_factory=Exclusions)
    original_probes: tuple[OriginalProbe, ...] = ()
    dry_run: bool = False
    joining: TokenEnrolment | None = None
    placement: Placement = Placement.NATIVE
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pull_secrets: tuple[str, ...] = ()
    overlays: tuple[Overlay, ...] = ()
    reason: str = ""
    ipv6_by_address: bool = False
    scraped: bool = False
    gateway: str = ""
