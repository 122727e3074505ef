"""What an injector must know of a pod: from MeshConfig, the pod's namespace, and the pod itself. Pure.

How its traffic is captured is said by annotations of our own (`specs.annotations.interception`). What is not
captured is said by those that Open Service Mesh named; their lists, with commas between the entries, are
added to those of MeshConfig:

    openservicemesh.io/inbound-port-exclusion-list: "9100"
    openservicemesh.io/outbound-port-exclusion-list: "6379, 27017"
    openservicemesh.io/outbound-ip-range-exclusion-list: "169.254.169.254/32"
    openservicemesh.io/outbound-ip-range-inclusion-list: "10.0.0.0/8"
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mesh.config import Exclusions, MeshConfig
from mesh.identity import ProxyName
from mesh.names import Namespace, Port, ProxyUuid, ServiceName, is_dns_label
from mesh.objects import NamespaceObject
from mesh.origins import InFile
from mesh.workload import DRIVER_ANNOTATION, Transparent
from sidecars.contract.errors import CannotPatchError
from sidecars.contract.kubernetes import Pod, spec_of
from sidecars.contract.pod import InjectorContext, KubernetesClient, PodOs, PullPolicy
from sidecars.injection.probes import originals
from sidecars.selection import select
from specs import annotations as our_own
from specs.core.endpoints import SERVICE_ANNOTATION
from specs.fields import Fields
from specs.notes import Notes

INBOUND_PORTS: Final = "openservicemesh.io/inbound-port-exclusion-list"
OUTBOUND_PORTS: Final = "openservicemesh.io/outbound-port-exclusion-list"
EXCLUDED_RANGES: Final = "openservicemesh.io/outbound-ip-range-exclusion-list"
INCLUDED_RANGES: Final = "openservicemesh.io/outbound-ip-range-inclusion-list"

_OS_LABEL: Final = "kubernetes.io/os"


@dataclass(frozen=True, slots=True)
class Injector:
    """What is the same for all pods; `environment` and `ports` choose drivers (`sidecars.selection`)."""

    mesh_name: str
    control_plane_namespace: Namespace
    ports: Mapping[str, int]
    environment: Mapping[str, str] = field(default_factory=dict)
    trust_bundle: bytes = field(default=b"", repr=False)
    kubernetes: KubernetesClient | None = None
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT


def injector_context(
    injector: Injector,
    config: MeshConfig,
    namespace: NamespaceObject,
    pod: Pod,
    uuid: ProxyUuid,
    *,
    dry_run: bool = False,
) -> InjectorContext:
    """Return what a driver's `patch` is given for a pod whose proxy is to have this UUID.

    The bootstrap certificate is not in it: who issues it, for `proxy`, puts it there. Raises CannotPatchError
    for an annotation or operating system that cannot be, DriverError for a driver that cannot be chosen.
    """
    annotations = pod.get("metadata", {}).get("annotations") or {}
    named = annotations.get(DRIVER_ANNOTATION) or dict(namespace.annotations).get(DRIVER_ANNOTATION, "")
    return InjectorContext(
        pod=pod,
        os=_os(pod),
        namespace=namespace.name,
        mesh_name=injector.mesh_name,
        control_plane_namespace=injector.control_plane_namespace,
        proxy=ProxyName(uuid, _service(pod, annotations), namespace.name),
        config=config,
        selection=select(config.sidecar, injector.environment, injector.ports, named),
        trust_bundle=injector.trust_bundle,
        kubernetes=injector.kubernetes,
        image_pull_policy=injector.image_pull_policy,
        interception=interception(annotations),
        exclusions=exclusions(config.exclusions, annotations),
        original_probes=originals(pod),
        dry_run=dry_run,
    )


def interception(annotations: Mapping[str, str]) -> Transparent:
    """Return how the pod wants its traffic captured, as the control plane will read it there."""
    notes = Notes(InFile("pod"))
    found = our_own.interception(Fields(annotations, "metadata.annotations", notes))
    for problem in notes.problems:
        raise CannotPatchError(f"{problem.field} is {problem.value}: {problem.expected}")
    return found


def exclusions(mesh_wide: Exclusions, annotations: Mapping[str, str]) -> Exclusions:
    """Return what MeshConfig and a pod's annotations say together, sorted, each once."""
    included = _united(mesh_wide.ranges_included or (), annotations, INCLUDED_RANGES)
    return Exclusions(
        inbound_ports=_ports(mesh_wide.inbound_ports, annotations, INBOUND_PORTS),
        outbound_ports=_ports(mesh_wide.outbound_ports, annotations, OUTBOUND_PORTS),
        ranges_included=included or None,
        ranges_excluded=_united(mesh_wide.ranges_excluded, annotations, EXCLUDED_RANGES),
    )


def _ports(mesh_wide: tuple[Port, ...], annotations: Mapping[str, str], name: str) -> tuple[Port, ...]:
    found = set(mesh_wide)
    for text in _entries(annotations, name):
        if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
            raise CannotPatchError(f"annotation {name}: {text!r} is no port number from 1 to 65535")
        found.add(Port(int(text)))
    return tuple(sorted(found))


def _united(mesh_wide: tuple[str, ...], annotations: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return ranges of both; what is none is said by who makes rules of them (`interception`)."""
    return tuple(sorted({*mesh_wide, *_entries(annotations, name)}))


def _entries(annotations: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the entries of a list; an annotation that is there and empty has none."""
    text = annotations.get(name, "").strip()
    return tuple(each.strip() for each in text.split(",")) if text else ()


def _service(pod: Pod, annotations: Mapping[str, str]) -> ServiceName:
    """Return the pod's primary service, as its Pod will be read once it runs."""
    spec = spec_of(pod)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    name = annotations.get(SERVICE_ANNOTATION) or account
    if not isinstance(name, str) or not is_dns_label(name):
        raise CannotPatchError(
            f"the primary service {name!r} is no DNS label, and stands in the proxy's common name: "
            f"name one by the annotation {SERVICE_ANNOTATION}"
        )
    return ServiceName(name)


def _os(pod: Pod) -> PodOs:
    spec = spec_of(pod)
    name = (spec.get("os") or {}).get("name") or (spec.get("nodeSelector") or {}).get(_OS_LABEL)
    name = name or PodOs.LINUX
    if name not in tuple(PodOs):
        raise CannotPatchError(f"there is no sidecar for the operating system {name!r}")
    return PodOs(name)
