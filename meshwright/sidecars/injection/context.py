"""Inputs of injection, from MeshConfig, the pod's namespace, and the pod itself. Pure.

Annotations of this project select how traffic is captured (`meshwright.specs.annotations.interception`).
Annotations of Open Service Mesh select exceptions. Each is a list separated by commas, and is added to the
same list in MeshConfig:

    openservicemesh.io/inbound-port-exclusion-list: "9100"
    openservicemesh.io/outbound-port-exclusion-list: "6379, 27017"
    openservicemesh.io/outbound-ip-range-exclusion-list: "169.254.169.254/32"
    openservicemesh.io/outbound-ip-range-inclusion-list: "10.0.0.0/8"

A namespace's `openservicemesh.io/metrics: enabled`, also of Open Service Mesh, gives its pods the annotations
by which Prometheus is usually configured to scrape them.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from meshwright.mesh.config import Exclusions, MeshConfig
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, Port, ProxyUuid, ServiceName, is_dns_label
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.workload import DRIVER_ANNOTATION, Transparent
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Pod, spec_of
from meshwright.sidecars.contract.pod import (
    InjectorContext,
    KubernetesClient,
    Overlay,
    Placement,
    PodOs,
    PullPolicy,
    RulesOwner,
    TokenEnrolment,
)
from meshwright.sidecars.contract.selection import select
from meshwright.sidecars.injection import author_container as own
from meshwright.sidecars.injection.names import ENABLED, INBOUND_PORTS, METRICS, PROXY_UUID_LABEL
from meshwright.sidecars.injection.probes import originals
from meshwright.sidecars.injection.restoration import restored
from meshwright.specs import annotations as our_own
from meshwright.specs.fields import Fields
from meshwright.specs.notes import Notes

OUTBOUND_PORTS: Final = "openservicemesh.io/outbound-port-exclusion-list"
EXCLUDED_RANGES: Final = "openservicemesh.io/outbound-ip-range-exclusion-list"
INCLUDED_RANGES: Final = "openservicemesh.io/outbound-ip-range-inclusion-list"

_OS_LABEL: Final = "kubernetes.io/os"
_READ: Final = frozenset(
    {
        *(INBOUND_PORTS, OUTBOUND_PORTS, EXCLUDED_RANGES, INCLUDED_RANGES, DRIVER_ANNOTATION),
        *(our_own.SERVICE_ANNOTATION, our_own.CAPTURE, our_own.IPV6, our_own.EGRESS_SERVICES),
        *(our_own.INJECT, our_own.OVERLAYS, our_own.PLACEMENT, our_own.GATEWAY_ANNOTATION),
    }
)
"""Annotations of a pod that are read here."""


NATIVE_SINCE: Final = (1, 29)
"""First version of Kubernetes with native sidecars enabled by default."""


@dataclass(frozen=True, slots=True)
class Injector:
    """Settings for all pods.

    `environment` and `ports` select drivers (`meshwright.sidecars.contract.selection`). A `placement` of None
    depends on the cluster's `version` (NATIVE if the version is unknown). A `joining` of None gives each
    proxy a certificate in a Secret.
    """

    mesh_name: str
    control_plane_namespace: Namespace
    ports: Mapping[str, int]
    environment: Mapping[str, str] = field(default_factory=dict)
    trust_bundle: bytes = field(default=b"", repr=False)
    kubernetes: KubernetesClient | None = None
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    pull_secrets: tuple[str, ...] = ()
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    joining: TokenEnrolment | None = None
    placement: Placement | None = None
    version: tuple[int, int] | None = None
    rules_by: RulesOwner = RulesOwner.INIT_CONTAINER


def injector_context(
    injector: Injector,
    config: MeshConfig,
    namespace: NamespaceObject,
    pod: Pod,
    uuid: ProxyUuid | None,
    *,
    dry_run: bool = False,
    overlays: tuple[Overlay, ...] = (),
    reason: str = "",
) -> InjectorContext:
    """Return the inputs of a driver's `patch` for a pod whose proxy gets this UUID.

    The UUID is the one in the pod's label, otherwise `uuid`, otherwise the pod's UID. The result lacks the
    bootstrap certificate: the certificate issuer adds one for the name in the field `proxy`. Raises
    CannotPatchError for an invalid annotation or operating system, and DriverError if a driver cannot be
    chosen.
    """
    annotations = read_annotations(pod)
    service = _service(pod, annotations)
    by_address = our_own.IPV6 not in annotations
    known = own_uuid(pod) or uuid
    plain = restored(pod)
    own.taken(plain)  # probes of the sidecar itself are not rewritten, even if the author wrote them
    named = annotations.get(DRIVER_ANNOTATION) or dict(namespace.annotations).get(DRIVER_ANNOTATION, "")
    return InjectorContext(
        pod=pod,
        os=_os(pod),
        namespace=namespace.name,
        mesh_name=injector.mesh_name,
        control_plane_namespace=injector.control_plane_namespace,
        proxy=None if known is None else ProxyName(known, service, namespace.name),
        config=config,
        selection=select(config.sidecar, injector.environment, injector.ports, named),
        trust_bundle=injector.trust_bundle,
        kubernetes=injector.kubernetes,
        image_pull_policy=injector.image_pull_policy,
        interception=interception(annotations),
        ipv6_by_address=by_address,
        rules_by=injector.rules_by,
        exclusions=exclusions(_of_captured(config.exclusions, annotations), annotations),
        original_probes=originals(plain),
        dry_run=dry_run,
        joining=injector.joining,
        placement=_placement(injector, annotations),
        resources=injector.resources,
        pull_secrets=injector.pull_secrets,
        overlays=overlays,
        reason=reason,
        scraped=dict(namespace.annotations).get(METRICS) == ENABLED,
        gateway=annotations.get(our_own.GATEWAY_ANNOTATION, ""),
    )


def read_annotations(pod: Pod) -> Mapping[str, str]:
    """Return a pod's annotations; raise CannotPatchError for a control character in one that is used here.

    Valid values never contain one, and some of them become parts of commands.
    """
    annotations = pod.get("metadata", {}).get("annotations") or {}
    for name in sorted(annotations):
        if name in _READ and any(unicodedata.category(item) == "Cc" for item in str(annotations[name])):
            raise CannotPatchError(f"annotation {name} has a control character: must be one line of text")
    return annotations


def own_uuid(pod: Pod) -> ProxyUuid | None:
    """Return the proxy UUID in a pod's label `meshwright.dev/proxy-uuid`.

    None if the pod lacks the label, or if the value is `metadata.uid`, which stands for the pod's UID.
    """
    text = (pod.get("metadata", {}).get("labels") or {}).get(PROXY_UUID_LABEL, our_own.OWN_UID)
    if text != our_own.OWN_UID and not is_dns_label(text):
        raise CannotPatchError(f"label {PROXY_UUID_LABEL} is {text!r}: must be a DNS label")
    return None if text == our_own.OWN_UID else ProxyUuid(text)


def _placement(injector: Injector, annotations: Mapping[str, str]) -> Placement:
    """Return the placement.

    The pod's annotation, else the setting for all pods, else by the cluster's version. The sidecar that
    serves a gateway has no application to serve, so it is a container like any other.
    """
    if annotations.get(our_own.GATEWAY_ANNOTATION):
        return Placement.CLASSIC
    text = annotations.get(our_own.PLACEMENT)
    if text is not None and text not in tuple(Placement):
        raise CannotPatchError(
            f"annotation {our_own.PLACEMENT} is {text!r}: must be one of {', '.join(sorted(Placement))}"
        )
    if text is not None:
        return Placement(text)
    if injector.placement is not None:
        return injector.placement
    is_old = injector.version is not None and injector.version < NATIVE_SINCE
    return Placement.CLASSIC if is_old else Placement.NATIVE


def interception(annotations: Mapping[str, str]) -> Transparent:
    """Return the capture settings of a pod, parsed as the control plane parses them for its Workload."""
    notes = Notes(InFile("pod"))
    transparent = our_own.interception(Fields(annotations, "metadata.annotations", notes))
    for problem in notes.problems:
        raise CannotPatchError(f"{problem.field} is {problem.value}: {problem.expected}")
    return transparent


def _of_captured(mesh_wide: Exclusions, annotations: Mapping[str, str]) -> Exclusions:
    """Return the mesh-wide exclusions, without IPv6 ranges if IPv6 is not captured anyway."""
    if interception(annotations).ipv6 or our_own.IPV6 not in annotations:
        return mesh_wide
    return replace(
        mesh_wide, ranges_excluded=tuple(item for item in mesh_wide.ranges_excluded if ":" not in item)
    )


def exclusions(mesh_wide: Exclusions, annotations: Mapping[str, str]) -> Exclusions:
    """Return the union of MeshConfig's and a pod's exclusions, sorted."""
    included = _united(mesh_wide.ranges_included or (), annotations, INCLUDED_RANGES)
    return Exclusions(
        inbound_ports=_ports(mesh_wide.inbound_ports, annotations, INBOUND_PORTS),
        outbound_ports=_ports(mesh_wide.outbound_ports, annotations, OUTBOUND_PORTS),
        ranges_included=included or None,
        ranges_excluded=_united(mesh_wide.ranges_excluded, annotations, EXCLUDED_RANGES),
        interfaces=mesh_wide.interfaces,
    )


def _ports(mesh_wide: tuple[Port, ...], annotations: Mapping[str, str], name: str) -> tuple[Port, ...]:
    ports = set(mesh_wide)
    for text in _entries(annotations, name):
        if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
            raise CannotPatchError(f"annotation {name}: {text!r} is not a port number from 1 to 65535")
        ports.add(Port(int(text)))
    return tuple(sorted(ports))


def _united(mesh_wide: tuple[str, ...], annotations: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the union of ranges. Invalid ones are reported later, by the code that makes rules of them."""
    return tuple(sorted({*mesh_wide, *_entries(annotations, name)}))


def _entries(annotations: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the entries of a list; an empty annotation has none. For example, `6379, 27017` has two."""
    text = annotations.get(name, "").strip()
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _service(pod: Pod, annotations: Mapping[str, str]) -> ServiceName:
    """Return the pod's primary service, by the rule that is applied to the running Pod later."""
    spec = spec_of(pod)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    name = annotations.get(our_own.SERVICE_ANNOTATION) or account
    if not isinstance(name, str) or not is_dns_label(name):
        raise CannotPatchError(
            f"the primary service {name!r} is not a DNS label, but the common name of the proxy "
            f"contains it: name another Service in the annotation {our_own.SERVICE_ANNOTATION}"
        )
    return ServiceName(name)


def _os(pod: Pod) -> PodOs:
    spec = spec_of(pod)
    name = (spec.get("os") or {}).get("name") or (spec.get("nodeSelector") or {}).get(_OS_LABEL)
    name = name or PodOs.LINUX
    if name not in tuple(PodOs):
        raise CannotPatchError(f"sidecars do not support the operating system {name!r}")
    return PodOs(name)
