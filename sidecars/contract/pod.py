"""What a driver is given to make a pod part of the mesh: the pod, and everything that is known about it."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from certs.material import ProxyCertificate
from mesh.config import Exclusions, MeshConfig
from mesh.identity import ProxyName
from mesh.names import Namespace
from mesh.workload import Transparent
from sidecars.contract.kubernetes import Pod, Probe
from sidecars.layout import ProbeKind
from sidecars.selection import Selection


class PodOs(enum.StrEnum):
    """What a pod's containers run on, as Kubernetes spells it (`kubernetes.io/os`)."""

    LINUX = "linux"
    WINDOWS = "windows"


class PullPolicy(enum.StrEnum):
    """When the sidecar's images are pulled."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


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

    `proxy` is the common name of the proxy's certificate, with its UUID. `selection` says of which images the
    sidecar is made, and where its control plane listens (`sidecars.selection`). `bootstrap_certificate` and
    `trust_bundle` reach the sidecar by a Secret, never by the pod. `kubernetes` is None where there is no
    cluster at hand. `original_probes` are those of the pod before anybody changed them
    (`sidecars.injection.probes.originals`). With `dry_run` nothing but the pod is made.
    """

    pod: Pod
    os: PodOs
    namespace: Namespace
    mesh_name: str
    control_plane_namespace: Namespace
    proxy: ProxyName
    config: MeshConfig
    selection: Selection
    bootstrap_certificate: ProxyCertificate | None = None
    trust_bundle: bytes = field(default=b"", repr=False)
    kubernetes: KubernetesClient | None = None
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    interception: Transparent = field(default_factory=Transparent)
    exclusions: Exclusions = field(default_factory=Exclusions)
    original_probes: tuple[OriginalProbe, ...] = ()
    dry_run: bool = False
