"""Injection of one Pod: the decision, and the Pod with its sidecar."""

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
"""Default name of a mesh."""

TO_COME: Final = ProxyUuid("yet-to-be-made")
"""Placeholder UUID of a proxy whose Pod does not exist yet; the webhook creates the real UUIDs."""


@dataclass(frozen=True, slots=True)
class InjectionInputs:
    """The inputs of injection besides the Pod.

    These are the configuration, drivers by name, and the environment that selects driver and images. `roots`
    (PEM) are written into the Pod if available. `version` is the cluster's version. `uuid` replaces the UUID
    in the Pod's labels; None leaves the choice to the labels, or to the Pod's UID.
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
    """The result for a Pod.

    `pod` is None if the Pod stays unchanged. `warnings` are for the client. `needs` is the proxy whose
    certificate must be created in a Secret, or None if the Pod joins by itself.
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
    """Decide about a Pod, and patch it. `ends`: the Pod is expected to end by itself, for example in a Job.

    `check` is called between the steps, each of which takes time linear in the size of the Pod. Raises the
    errors of `check`, CannotPatchError for a Pod whose sidecar cannot be added, and DriverError if no driver
    can be selected.
    """
    config = known.config
    read_annotations(pod)  # reports a control character with its own message
    decision = decide(config, namespace, pod)
    if not decision.inject:
        return PodInjection(decision)
    check()
    checked(restored(pod))  # the original in the Pod's annotations is unchecked
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
    if any(
        init_container.get("name") == INIT_CONTAINER
        for init_container in spec_of(patched).get("initContainers") or ()
    ):
        warnings += scraping.warnings(context, restored(pod))
    return PodInjection(decision, patched, tuple(warnings), needs)


def _named(pod: Pod, uuid: ProxyUuid) -> Pod:
    """Return a Pod with this proxy UUID in its label."""
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
        ports={name: driver.proxy_server_port for name, driver in known.drivers.items()},
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
    """Yield a warning for each unknown label or annotation with our prefix or Open Service Mesh's."""
    metadata = pod.get("metadata", {})
    for section, names in (
        ("annotations", metadata.get("annotations") or {}),
        ("labels", metadata.get("labels") or {}),
    ):
        for name in sorted(names):
            if why := unread(POD, section, name) or unread_name(POD, section, name):
                yield f"metadata.{section}[{name:.80}]: {why}"


def _warnings(pod: Pod, placement: Placement, *, ends: bool) -> list[str]:
    """Return warnings about settings of a Pod that are probably mistakes, although its sidecar would work."""
    result = []
    policy = spec_of(pod).get("dnsPolicy") or "ClusterFirst"
    if policy != "ClusterFirst":
        result.append(
            f"dnsPolicy is {policy}, but the sidecar finds the control plane by the name of "
            "its Service, so the DNS servers of the pod must know Services of the cluster"
        )
    is_to_end = ends or spec_of(pod).get("restartPolicy", "Always") != "Always"
    if is_to_end and placement is Placement.CLASSIC:
        result.append(
            "a sidecar as an ordinary container does not end by itself, so the pod would not "
            "complete: let the last container send POST /quitquitquit to 127.0.0.1:15020, or use a "
            "native sidecar"
        )
    return result
