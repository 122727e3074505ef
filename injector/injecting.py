"""A pod in, what becomes of it out: the decision, and with a yes the pod with its sidecar."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from injector.configuration import InjectionConfig
from injector.decision import Decision, decide
from injector.overlays import chosen
from injector.shapes import checked
from mesh.config import MeshConfig
from mesh.objects import NamespaceObject
from sidecars.contract.driver import SidecarDriver
from sidecars.contract.kubernetes import Pod, spec_of
from sidecars.contract.pod import Placement
from sidecars.injection.context import Injector, injector_context, read_annotations
from sidecars.injection.restoring import restored
from sidecars.selection import INIT_VARIABLE, LINUX_VARIABLE

MESH: Final = "meshwright"
"""What a mesh is called that has no name."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known besides the pod: drivers by name, the environment that chooses among them and images.

    `roots` (PEM) stand in the pods, where they are at hand; `version` is the cluster's.
    """

    config: InjectionConfig
    drivers: Mapping[str, SidecarDriver]
    mesh_config: MeshConfig = field(default_factory=MeshConfig)
    environment: Mapping[str, str] = field(default_factory=dict)
    roots: bytes = b""
    version: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Injected:
    """What became of a pod: `pod` is None where it is left as it is. `warnings` are for who asked."""

    decision: Decision
    pod: Pod | None = None
    warnings: tuple[str, ...] = ()


def injected(known: Known, namespace: NamespaceObject, pod: Pod, *, ends: bool = False) -> Injected:
    """Decide about a pod, and patch it; `ends` says that it is to end by itself, as a Job's.

    Raises CannotPatchError for one that is to have a sidecar and cannot, DriverError for a driver that cannot
    be chosen.
    """
    config = known.config
    read_annotations(pod)  # a control character is said as what it is
    decision = decide(config, namespace, pod)
    if not decision.inject:
        return Injected(decision)
    checked(restored(pod))  # nobody has looked at what its annotations hold of it
    context = injector_context(
        _injector(known),
        known.mesh_config,
        namespace,
        pod,
        None,
        overlays=chosen(config.overlays, config.default_overlays, namespace, pod),
        reason=decision.words,
    )
    patched = known.drivers[context.selection.driver].patch(context)
    return Injected(decision, patched, tuple(_warnings(pod, context.placement, ends=ends)))


def _injector(known: Known) -> Injector:
    config = known.config
    images = {LINUX_VARIABLE: config.image, INIT_VARIABLE: config.init_image}
    named = {name: image for name, image in images.items() if image}
    return Injector(
        mesh_name=config.mesh or MESH,
        control_plane_namespace=config.control_plane_namespace,
        ports={name: each.proxy_server_port for name, each in known.drivers.items()},
        environment={**known.environment, **named},
        image_pull_policy=config.pull_policy,
        pull_secrets=config.pull_secrets,
        resources=config.resources,
        joining=replace(config.joining, roots=known.roots),
        placement=config.placement,
        version=known.version,
        rules_by=config.rules_by,
    )


def _warnings(pod: Pod, placement: Placement, *, ends: bool) -> list[str]:
    """Return what may not be meant; nothing of it keeps a sidecar from working."""
    found = []
    policy = spec_of(pod).get("dnsPolicy") or "ClusterFirst"
    if policy != "ClusterFirst":
        found.append(f"dnsPolicy is {policy}: the control plane is looked up by its Service's name")
    is_to_end = ends or spec_of(pod).get("restartPolicy", "Always") != "Always"
    if is_to_end and placement is Placement.CLASSIC:
        found.append(
            "a classic sidecar does not end by itself: have the last container POST /quitquitquit "
            "to 127.0.0.1:15020, or let the sidecar be native"
        )
    return found
