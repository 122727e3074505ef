"""Comparison of a cluster's Pods with the Pods that the injector would create now. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from meshwright.cli.checking.cluster.starts import Start, trouble_of
from meshwright.cli.checking.judgements.check import counted
from meshwright.cli.checking.judgements.installation import PodFinding
from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.config_file import only_in
from meshwright.kubernetes.injection.comparison import differences
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError, InjectionConfig
from meshwright.kubernetes.injection.configuration.configuration import read as read_configuration
from meshwright.kubernetes.injection.configuration.place import CONFIG_KEY
from meshwright.kubernetes.injection.credentials.pod_roots import is_injected, is_of
from meshwright.kubernetes.injection.decision import Reason, decide
from meshwright.kubernetes.injection.pod_injection import InjectionInputs
from meshwright.kubernetes.injection.selectors import required
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import NAMESPACE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract import kubernetes
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.errors import CannotPatchError, DriverError
from meshwright.sidecars.injection.names import PROXY_UUID_LABEL, SIDECAR_CONTAINER
from meshwright.sidecars.injection.restoration import is_patched
from meshwright.specs.own_names import unread
from meshwright.specs.own_values import unread_name, wrong_values


@dataclass(frozen=True, slots=True)
class Injection:
    """Inputs of the injector: configuration, drivers, MeshConfig, and the version of Kubernetes."""

    config: InjectionConfig
    drivers: Mapping[str, SidecarDriver]
    mesh_config: MeshConfig
    version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class PodsByState:
    """Pods by their problem, and the namespaces that request or have sidecars.

    `injected` is the number of Pods with sidecars, in any phase. `unready` are Pods whose sidecars cannot
    start, or run and are not ready. `late` are Pods whose sidecars have not started in time, or were killed
    lately. `ready` are running Pods with ready sidecars. `misworded` are namespaces with an unknown name or
    value in a label or annotation of ours.
    """

    without: tuple[PodFinding, ...]
    outdated: tuple[PodFinding, ...]
    unready: tuple[PodFinding, ...]
    late: tuple[PodFinding, ...]
    ready: tuple[Mapping[str, Any], ...]
    injected: int
    asking: frozenset[str]
    namespaces: frozenset[str]
    misworded: tuple[PodFinding, ...] = ()


def config_of(raw: Mapping[str, Any] | None, home: str, key: str = CONFIG_KEY) -> InjectionConfig:
    """Read the injection configuration from a ConfigMap, like the control plane; raise ConfigurationError."""
    text = str(((raw or {}).get("data") or {}).get(key, ""))
    try:
        read = read_configuration(only_in(text, key), key)
    except SettingsError as error:
        raise ConfigurationError(str(error)) from error
    return replace(read, control_plane_namespace=Namespace(home))


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Return whether a webhook's selector matches these labels; a missing or empty selector matches all."""
    return all(requirement.holds(labels) for requirement in required(selector))


def is_active(namespace: Mapping[str, Any]) -> bool:
    """Return whether a namespace is not being deleted."""
    return bool((namespace.get("status") or {}).get("phase") != "Terminating")


def sorted_out(
    injection: Injection,
    namespaces: Sequence[NamespaceObject],
    pods: Sequence[Mapping[str, Any]],
    now: datetime,
    revision: str = "",
) -> PodsByState:
    """Sort a cluster's Pods, without ended ones.

    Pods in namespaces of another revision are left out, because they belong to another control plane.
    """
    by_name = {str(namespace.name): namespace for namespace in namespaces if is_of(namespace, revision)}
    config = injection.config
    asking = frozenset(
        name for name, namespace in by_name.items() if is_injected(config, namespace, revision)
    )
    there = [pod for pod in pods if _is_there(pod) and pod["metadata"]["namespace"] in by_name]
    ours = [item for item in there if _has_sidecar(item)]
    others = [item for item in there if not _has_sidecar(item)]
    running = [item for item in ours if item.get("status", {}).get("phase") == "Running"]
    troubles = [(name_of(item), trouble) for item in ours if (trouble := trouble_of(item, now)) is not None]
    faulty = {name: trouble.why for name, trouble in troubles if trouble.start is Start.FAULTY}
    unready = {name_of(item): why for item in running if (why := _unready(item))}
    return PodsByState(
        without=tuple(_without(config, by_name, others, revision)),
        outdated=tuple(_outdated(injection, by_name, ours)),
        unready=tuple(PodFinding(name, why) for name, why in sorted((unready | faulty).items())),
        late=tuple(PodFinding(name, result.why) for name, result in troubles if result.start is Start.LATE),
        ready=tuple(item for item in running if not _unready(item)),
        injected=len(ours),
        asking=asking,
        namespaces=frozenset(str(item["metadata"]["namespace"]) for item in ours),
        misworded=tuple(_misworded(namespaces)),
    )


def _misworded(namespaces: Sequence[NamespaceObject]) -> Iterator[PodFinding]:
    """Yield namespace labels and annotations of Meshwright with an unknown name or value."""
    for namespace in sorted(namespaces, key=lambda one: str(one.name)):
        for section, pairs in (("labels", namespace.labels), ("annotations", namespace.annotations)):
            for wrong in wrong_values(NAMESPACE, section, pairs):
                yield PodFinding(str(namespace.name), str(wrong))
            for name, _ in pairs:
                if why := unread(NAMESPACE, section, name) or unread_name(NAMESPACE, section, name):
                    yield PodFinding(str(namespace.name), f"metadata.{section}[{name}]: {why}")


def _is_there(pod: Mapping[str, Any]) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not ended and not pod["metadata"].get("deletionTimestamp")


def _has_sidecar(pod: Mapping[str, Any]) -> bool:
    return is_patched(cast("kubernetes.Pod", pod)) or PROXY_UUID_LABEL in (
        pod["metadata"].get("labels") or {}
    )


def name_of(pod: Mapping[str, Any]) -> str:
    """Return `namespace/name` of a Pod."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _without(
    config: InjectionConfig,
    namespaces: Mapping[str, NamespaceObject],
    pods: Sequence[Mapping[str, Any]],
    revision: str,
) -> Iterator[PodFinding]:
    """Yield the Pods without sidecar that would get one if created now, with the deciding rule."""
    for pod in pods:
        namespace = namespaces[pod["metadata"]["namespace"]]
        try:
            decision = decide(config, namespace, cast("kubernetes.Pod", pod))
        except CannotPatchError as error:
            yield PodFinding(name_of(pod), f"would be refused: {error}")
            continue
        if decision.inject and (decision.reason is Reason.POD or is_injected(config, namespace, revision)):
            yield PodFinding(name_of(pod), decision.words)


def _outdated(
    injection: Injection,
    namespaces: Mapping[str, NamespaceObject],
    pods: Sequence[Mapping[str, Any]],
) -> Iterator[PodFinding]:
    known = InjectionInputs(
        injection.config, injection.drivers, injection.mesh_config, version=injection.version
    )
    for item in pods:
        pod = cast("kubernetes.Pod", item)
        if not is_patched(pod):
            continue
        try:
            other = differences(known, namespaces[item["metadata"]["namespace"]], pod)
        except DriverError as error:
            yield PodFinding(name_of(item), f"would be refused: {' '.join(str(error).split())}")
            continue
        if other is None:
            yield PodFinding(name_of(item), "would not get a sidecar")
        elif other:
            more = f"; and {counted(len(other) - 1, 'more field')}" if len(other) > 1 else ""
            yield PodFinding(name_of(item), f"{other[0]}{more}")


def _unready(pod: Mapping[str, Any]) -> str:
    """Return why the sidecar of a running Pod is not ready; empty for a ready one."""
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in containers:
        if container.get("name") == SIDECAR_CONTAINER and not (
            container.get("started") and container.get("ready", True)
        ):
            state = container.get("state") or {}
            waiting = state.get("waiting") or state.get("terminated") or {}
            return str(waiting.get("reason") or "the container has not started")
    return ""
