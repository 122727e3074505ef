"""What a driver is given to make a pod part of the mesh: the pod, and everything that is known about it."""

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
from meshwright.sidecars.layout import ProbeKind


class PodOs(enum.StrEnum):
    """What a pod's containers run on, as Kubernetes spells it (`kubernetes.io/os`)."""

    LINUX = "linux"
    WINDOWS = "windows"


class PullPolicy(enum.StrEnum):
    """When the sidecar's images are pulled."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class Placement(enum.StrEnum):
    """Where the sidecar stands in a pod.

    NATIVE: among the init containers, with `restartPolicy: Always` (Kubernetes 1.29): it is ready before
    anything else begins, ends after the last container, and keeps no Job from ending. CLASSIC: the first of
    the containers.
    """

    NATIVE = "native"
    CLASSIC = "classic"


class RulesOwner(enum.StrEnum):
    """Who sets the rules that lead a pod's traffic through its proxy.

    INIT_CONTAINER: one of the pod, which must be permitted to (NET_ADMIN). CNI: the node, before any
    container begins; the init container sees whether it has, and needs no right.
    """

    INIT_CONTAINER = "init-container"
    CNI = "cni"


@dataclass(frozen=True, slots=True)
class TokenEnrolment:
    """How a pod's agent comes by its certificate without a Secret: by its own ServiceAccount token.

    The ports are those of the control plane's Service at which it joins and renews. It believes the control
    plane by `roots` (PEM), which then stand in the pod, or else by a ConfigMap of its namespace.
    """

    enrolment_port: int = 15130
    renewal_port: int = 15131
    roots: bytes = b""
    roots_config_map: str = "meshwright-roots"


@dataclass(frozen=True, slots=True)
class Overlay:
    """What is laid over what is injected, as strategic merge patches: two containers, and the volumes."""

    name: str
    sidecar: Mapping[str, object] = field(default_factory=dict)
    interception: Mapping[str, object] = field(default_factory=dict)
    volumes: tuple[Mapping[str, object], ...] = ()


class KubernetesClient(Protocol):
    """The Kubernetes API, as far as a driver may need it; `patch` itself never calls it."""

    async def create(self, manifest: Mapping[str, object]) -> None:
        """Create an object."""


@dataclass(frozen=True, slots=True)
class OriginalProbe:
    """A probe as the pod's author wrote it."""

    container: str
    kind: ProbeKind
    probe: Probe


@dataclass(frozen=True, slots=True)
class InjectorContext:
    """All that a driver's `patch` is given.

    `proxy` is the common name of the proxy's certificate, with its UUID; None leaves the UUID to the pod's
    own UID, which nobody knows before there is a pod. `selection` says of which images the sidecar is made,
    and where its control plane listens (`meshwright.sidecars.contract.selection`). `joining` is None where a
    certificate is made for it: `bootstrap_certificate` and `trust_bundle` then reach the sidecar by a Secret,
    never by the pod.
    `kubernetes` is None where there is no cluster at hand. `original_probes` are those of the pod before
    anybody changed them (`meshwright.sidecars.injection.probes.originals`). `overlays` are laid over the
    sidecar in their order. `reason` says why the pod gets one. `scraped`: it is to say where its metrics are.
    With `ipv6_by_address` IPv6 is intercepted where the pod turns out to have an address of it, which nobody
    knows yet. With `dry_run` nothing but the pod is made.
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
