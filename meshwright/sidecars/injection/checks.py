"""Checks of a pod before injection."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from meshwright.mesh.workload import Capture, Transparent
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import BY_NETWORK, Container, Pod, PodSpec, probe_of, spec_of
from meshwright.sidecars.contract.pod import InjectorContext, Placement, PodOs
from meshwright.sidecars.injection import names
from meshwright.sidecars.injection.sidecar import Sidecar
from meshwright.sidecars.layout import (
    ADMIN_PORT,
    INBOUND_PORT,
    OUTBOUND_PORT,
    PROXY_UID,
    STATUS_PORT,
    TPROXY_PORT,
    ProbeKind,
)
from meshwright.specs.annotations import GATEWAY_ANNOTATION
from meshwright.specs.own_names import INJECTED

_TAKEN_PORTS: Final = (ADMIN_PORT, OUTBOUND_PORT, INBOUND_PORT, STATUS_PORT)


def check(context: InjectorContext, sidecar: Sidecar, pod: Pod) -> None:
    """Raise CannotPatchError with the first reason against a pod, which must be without injected parts."""
    for reason in _reasons(context, sidecar, pod):
        raise CannotPatchError(reason)


def all_containers(pod: Pod) -> Iterator[Container]:
    """Yield every container of a pod, init containers first."""
    spec = spec_of(pod)
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _reasons(context: InjectorContext, sidecar: Sidecar, pod: Pod) -> Iterator[str]:
    spec = spec_of(pod)
    if not spec.get("containers") and not context.gateway:
        yield "spec.containers is empty"
    if spec.get("containers") and context.gateway:
        yield f"annotation {GATEWAY_ANNOTATION} is for pods with container {names.SIDECAR_CONTAINER} alone"
    noted = set(pod.get("metadata", {}).get("annotations") or ()) & INJECTED
    yield from (f"annotation {name} is reserved for the injector: remove it" for name in sorted(noted))
    known = Counter(container.get("name") for container in all_containers(pod))
    yield from (f"two containers are named {name}" for name, count in known.items() if count > 1)
    yield from _identity_faults(context, sidecar, pod)
    laid = {str(volume.get("name")) for overlay in context.overlays for volume in overlay.volumes}
    if twice := {item.get("name", "") for item in spec.get("volumes") or ()} & {*names.VOLUMES, *laid}:
        yield f"spec.volumes has a volume of one of the sidecar's names: {min(twice)}"
    if not sidecar.intercepts:
        # Refused instead of ignored, because the author relies on the interception.
        if context.interception != Transparent():
            driver = context.selection.driver
            yield f"its annotations configure interception, but driver {driver} does not intercept traffic"
        return
    if context.placement is Placement.CLASSIC:
        yield from _too_early(spec)
    if context.os is PodOs.WINDOWS:
        yield "on Windows the traffic of a pod cannot be intercepted: iptables and the agent are missing"
    if spec.get("hostNetwork"):
        yield "spec.hostNetwork is true: the sidecar would capture the traffic of the whole node"
    yield from _conflicts(spec, tuple(all_containers(pod)), context.interception.capture)


def _identity_faults(context: InjectorContext, sidecar: Sidecar, pod: Pod) -> Iterator[str]:
    """Yield the reasons for which the sidecar would have a wrong identity, or would lack one."""
    certificate, proxy = context.bootstrap_certificate, context.proxy
    if proxy is None:
        if not sidecar.joins:
            driver = context.selection.driver
            yield f"the sidecar of driver {driver} cannot join by itself: it needs an issued certificate"
        return
    if certificate is not None and certificate.name != proxy:
        yield f"the certificate is for {certificate.name}, but the proxy is {proxy}"
    text = (pod.get("metadata", {}).get("labels") or {}).get(names.PROXY_UUID_LABEL, proxy.uuid)
    if text != proxy.uuid:
        yield f"label {names.PROXY_UUID_LABEL} is {text!r}, but the proxy is {proxy}"
    if proxy.namespace != context.namespace:
        yield f"the proxy {proxy} does not belong to namespace {context.namespace}"


def _too_early(spec: PodSpec) -> Iterator[str]:
    """Yield the init containers with network probes, which run before and after the sidecar starts."""
    for item in spec.get("initContainers") or ():
        probe_kinds = [
            kind for kind in ProbeKind if not set(BY_NETWORK).isdisjoint(probe_of(item, kind) or ())
        ]
        if probe_kinds:
            yield (
                f"init container {item.get('name')} has a {probe_kinds[0]} over the network, but the "
                "kubelet calls it before the sidecar runs, and after that only the sidecar can "
                "answer: use a probe or hook of kind exec"
            )


def _conflicts(spec: PodSpec, containers: tuple[Container, ...], capture: Capture) -> Iterator[str]:
    taken = (*_TAKEN_PORTS, TPROXY_PORT) if capture is Capture.TPROXY else _TAKEN_PORTS
    for each in containers:
        # In Kubernetes the user of a container wins over the user of the pod.
        user = (spec.get("securityContext") or {}).get("runAsUser")
        if (each.get("securityContext") or {}).get("runAsUser", user) == PROXY_UID:
            yield f"container {each.get('name')} runs as user {PROXY_UID}: its own traffic is not captured"
        for port in each.get("ports") or ():
            if port.get("containerPort") in taken:
                yield f"container {each.get('name')} has port {port['containerPort']}, which the sidecar uses"
