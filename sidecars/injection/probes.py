"""A pod's probes: those its author wrote, and those that ask the agent instead.

A kubelet is not in the mesh: asked through the proxy it would be refused. It asks the agent, on a port that
is not captured, and the agent asks the application over loopback.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sidecars.contract.errors import CannotPatchError
from sidecars.contract.pod import OriginalProbe, Pod
from sidecars.layout import STATUS_PORT, ProbeKind, probe_path

_CARRIED_OUT: Final = ("httpGet", "tcpSocket", "grpc")


def originals(pod: Pod) -> tuple[OriginalProbe, ...]:
    """Return the probes of a pod's containers, in their order (init containers': see checks)."""
    return tuple(
        OriginalProbe(str(container.get("name", "")), kind, container[kind.value])
        for container in pod.get("spec", {}).get("containers", ())
        for kind in ProbeKind
        if isinstance(container.get(kind.value), Mapping)
    )


def is_rewritten(original: OriginalProbe) -> bool:
    """Say whether a probe must be asked of the agent.

    A command runs in the container, and a probe with a host of its own asks somebody else: both stay.
    """
    how = [original.probe.get(name) for name in _CARRIED_OUT if name in original.probe]
    return bool(how) and isinstance(how[0], Mapping) and not how[0].get("host")


def rewritten(original: OriginalProbe) -> dict[str, Any]:
    """Return the probe that asks the agent; thresholds and times stay as they are."""
    kept = {name: value for name, value in original.probe.items() if name not in _CARRIED_OUT}
    path = probe_path(original.container, original.kind)
    return {"httpGet": {"path": path, "port": STATUS_PORT, "scheme": "HTTP"}, **kept}


def for_agent(pod: Pod, found: Sequence[OriginalProbe]) -> dict[str, dict[str, Any]]:
    """Return what the agent carries out, by path; ports are numbers. CannotPatchError for an unknown name."""
    containers: Iterable[Mapping[str, Any]] = pod.get("spec", {}).get("containers", ())
    ports = {str(each.get("name", "")): _ports(each) for each in containers}
    return {
        probe_path(each.container, each.kind): _numbered(each, ports.get(each.container, {}))
        for each in found
        if is_rewritten(each)
    }


def _numbered(original: OriginalProbe, ports: Mapping[str, int]) -> dict[str, Any]:
    (name,) = (each for each in _CARRIED_OUT if each in original.probe)
    how = dict(original.probe[name])
    port = how.get("port")
    if isinstance(port, str):
        number = ports.get(port, int(port) if port.isascii() and port.isdigit() else 0)
        if not number:
            raise CannotPatchError(
                f"{original.kind} of container {original.container} names port {port!r}, "
                "which none of the container's ports is called"
            )
        how["port"] = number
    seconds = original.probe.get("timeoutSeconds")
    return {name: how} if seconds is None else {name: how, "timeoutSeconds": seconds}


def _ports(container: Mapping[str, Any]) -> dict[str, int]:
    return {
        str(each["name"]): int(each["containerPort"])
        for each in container.get("ports", ())
        if "name" in each and "containerPort" in each
    }
