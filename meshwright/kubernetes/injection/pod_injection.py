"""A pod in, what becomes of it out: the decision, and with a yes the pod with its sidecar."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from meshwright.kubernetes.admission.turns import Check, unhurried
from meshwright.kubernetes.injection.configuration.configuration import Identity, InjectionConfig
from meshwright.kubernetes.injection.configuration.overlays import chosen
from meshwright.kubernetes.injection.decision import Decision, decide
from meshwright.kubernetes.injection.shapes import checked
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import POD
from meshwright.mesh.names import ProxyUuid
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Pod, spec_of
from meshwright.sidecars.contract.pod import Placement
from meshwright.sidecars.contract.selection import INIT_VARIABLE, LINUX_VARIABLE
from meshwright.sidecars.injection import scraping
from meshwright.sidecars.injection.context import Injector, injector_context, read_annotations
from meshwright.sidecars.injection.names import INIT_CONTAINER, PROXY_UUID_LABEL
from meshwright.sidecars.injection.restoration import restored
from meshwright.specs.own_names import unread
from meshwright.specs.own_values import unread_name

MESH: Final = "meshwright"
"""What a mesh is called that has no name."""

TO_COME: Final = ProxyUuid("yet-to-be-made")
"""What a proxy is called that is asked about before its pod is made, where the webhook makes its UUID."""


@dataclass(frozen=True, slots=True)
class InjectionInputs:
    """What is known besides the pod: drivers by name, the environment that chooses among them and images.

    `roots` (PEM) stand in the pods, where they are at hand; `version` is the cluster's. `uuid` is what the
    pod's proxy is to have, whatever its labels say; None leaves it to them, or to the pod's own UID.
    """

    config: InjectionConfig
    drivers: Mapping[str, SidecarDriver]
    mesh_config: MeshConfig = field(default_factory=MeshConfig)
    environment: Mapping[str, str] = field(default_factory=dict)
    roots: bytes = b""
    version: tuple[int, int] | None = None
    uuid: ProxyUuid | None = None


@dataclass(frozen=True, slots=True)
class PodInjection:
    """What became of a pod: `pod` is None where it is left as it is. `warnings` are for who asked.

    `needs` is the proxy for which a certificate must be made, in a Secret; None where the pod joins itself.
    """

    decision: Decision
    pod: Pod | None = None
    warnings: tuple[str, ...] = ()
    needs: ProxyName | None = None


def injected(
    known: InjectionInputs,
    namespace: NamespaceObject,
    pod: Pod,
    *,
    ends: bool = False,
    check: Check = unhurried,
) -> PodInjection:
    """Decide about a pod, and patch it; `ends` says that it is to end by itself, as a Job's.

    `check` is called between the steps, each of which takes a time that is linear in the size of the pod.
    Raises what `check` does, CannotPatchError for a pod that is to have a sidecar and cannot, and DriverError
    for a driver that cannot be chosen.
    """
    config = known.config
    read_annotations(pod)  # a control character is said as what it is
    decision = decide(config, namespace, pod)
    if not decision.inject:
        return PodInjection(decision)
    check()
    checked(restored(pod))  # nobody has looked at what its annotations hold of it
    if config.identity is Identity.SECRET and known.uuid is None:
        raise CannotPatchError(
            "the injection configuration has `identity: secret`, which works only with "
            "the webhook, because the webhook creates the Secret together with the pod. "
            "To inject by hand, use `identity: token`"
        )
    check()
    context = injector_context(
        _injector(known),
        known.mesh_config,
        namespace,
        pod if known.uuid is None else _named(pod, known.uuid),
        known.uuid,
        overlays=chosen(config.overlays, config.default_overlays, namespace, pod),
        reason=decision.words,
    )
    check()
    patched = known.drivers[context.selection.driver].patch(context)
    check()
    needs = context.proxy if config.identity is Identity.SECRET else None
    warnings = [*_warnings(pod, context.placement, ends=ends), *_slips(pod)]
    if any(each.get("name") == INIT_CONTAINER for each in spec_of(patched).get("initContainers") or ()):
        warnings += scraping.warnings(context, restored(pod))
    return PodInjection(decision, patched, tuple(warnings), needs)


def _named(pod: Pod, uuid: ProxyUuid) -> Pod:
    """Return a pod whose label says this UUID."""
    metadata = pod.get("metadata", {})
    labels = {**(metadata.get("labels") or {}), PROXY_UUID_LABEL: uuid}
    return {**pod, "metadata": {**metadata, "labels": labels}}


def _injector(known: InjectionInputs) -> Injector:
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
        joining=None if config.identity is Identity.SECRET else replace(config.joining, roots=known.roots),
        placement=config.placement,
        version=known.version,
        rules_by=config.rules_by,
    )


def _slips(pod: Pod) -> Iterator[str]:
    """Yield labels and annotations of the pod under our prefix, or Open Service Mesh's, that nobody reads."""
    metadata = pod.get("metadata", {})
    for section, names in (
        ("annotations", metadata.get("annotations") or {}),
        ("labels", metadata.get("labels") or {}),
    ):
        for name in sorted(names):
            if why := unread(POD, section, name) or unread_name(POD, section, name):
                yield f"metadata.{section}[{name:.80}]: {why}"


def _warnings(pod: Pod, placement: Placement, *, ends: bool) -> list[str]:
    """Return what may not be meant; nothing of it keeps a sidecar from working."""
    found = []
    policy = spec_of(pod).get("dnsPolicy") or "ClusterFirst"
    if policy != "ClusterFirst":
        found.append(
            f"dnsPolicy is {policy}, but the sidecar finds the control plane by the name of "
            "its Service, so the DNS servers of the pod must know Services of the cluster"
        )
    is_to_end = ends or spec_of(pod).get("restartPolicy", "Always") != "Always"
    if is_to_end and placement is Placement.CLASSIC:
        found.append(
            "a classic sidecar does not end by itself, so the pod would not complete: "
            "have the last container send POST /quitquitquit to 127.0.0.1:15020, or use "
            "a native sidecar"
        )
    return found
