"""Probes of a pod: the author's, and the ones that call the agent instead.

A kubelet is not in the mesh, so the proxy would refuse its probes. Therefore the kubelet calls the agent, on
a port that is not captured, and the agent calls the application over loopback.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import (
    BY_NETWORK,
    ByNetwork,
    Container,
    HttpGet,
    Pod,
    Probe,
    probe_of,
    put_probe,
    spec_of,
    stays,
)
from meshwright.sidecars.contract.pod import OriginalProbe
from meshwright.sidecars.layout import STATUS_PORT, ProbeKind, probe_path


def originals(pod: Pod) -> tuple[OriginalProbe, ...]:
    """Return the probes of a pod's containers in order, native sidecars first."""
    return tuple(
        OriginalProbe(container.get("name", ""), kind, probe)
        for container in running(pod)
        for kind in ProbeKind
        if (probe := probe_of(container, kind)) is not None
    )


def running(pod: Pod) -> Iterator[Container]:
    """Yield the containers that run as long as the pod does; only these can have probes."""
    spec = spec_of(pod)
    yield from filter(stays, spec.get("initContainers") or ())
    yield from spec.get("containers") or ()


def rewrite(containers: Iterable[Container], kept: Iterable[OriginalProbe]) -> None:
    """Point the probes of containers at the agent; the containers are changed.

    The probes are grouped by container first, so that the work is linear in the size of the Pod.
    """
    by_container: dict[str, list[OriginalProbe]] = {}
    for original_probe in kept:
        by_container.setdefault(original_probe.container, []).append(original_probe)
    for container in containers:
        for original_probe in by_container.get(container.get("name", ""), ()):
            put_probe(container, original_probe.kind, rewritten(original_probe))


def is_rewritten(original: OriginalProbe) -> bool:
    """Return whether a probe must go through the agent.

    A command runs in the container, and a probe with its own host calls something else; both stay.
    """
    return _call(original.probe) is not None


def rewritten(original: OriginalProbe) -> Probe:
    """Return the probe that calls the agent in place of the original; thresholds and times are kept."""
    probe = original.probe.copy()
    for item in BY_NETWORK:
        probe.pop(item, None)
    path = probe_path(original.container, original.kind)
    return {"httpGet": {"path": path, "port": STATUS_PORT, "scheme": "HTTP"}, **probe}


def for_agent(pod: Pod, original_probes: Sequence[OriginalProbe]) -> dict[str, Probe]:
    """Return the original calls by the agent's path, with numeric ports.

    Raise CannotPatchError for an unknown name.
    """
    ports = {item.get("name", ""): ports_of(item) for item in running(pod)}
    return {
        probe_path(original_probe.container, original_probe.kind): _numbered(
            original_probe, *call, ports.get(original_probe.container, {})
        )
        for original_probe in original_probes
        if (call := _call(original_probe.probe)) is not None
    }


def _call(probe: Probe) -> tuple[ByNetwork, HttpGet] | None:
    """Return kind and call of a probe to the application; None if there is no such call."""
    for way in BY_NETWORK:
        if (call := probe.get(way)) is not None:
            return None if call.get("host") else (way, call)
    return None


def _numbered(original: OriginalProbe, way: ByNetwork, call: HttpGet, ports: Mapping[str, int]) -> Probe:
    asked: Probe = {}
    asked[way] = numbered(call, ports, f"{original.kind} of container {original.container}")
    if (seconds := original.probe.get("timeoutSeconds")) is not None:
        asked["timeoutSeconds"] = seconds
    return asked


def numbered(call: HttpGet, ports: Mapping[str, int], subject: str) -> HttpGet:
    """Return an HTTP, TCP or gRPC call with a numeric port.

    Raises CannotPatchError, with a message that begins with `subject`.
    """
    how = call.copy()
    port = how.get("port")
    if isinstance(port, str):
        # Like a kubelet: first the name of a port, then a number written as text.
        number = ports.get(port, int(port) if port.isascii() and port.isdigit() else 0)
        if not number:
            raise CannotPatchError(
                f"{subject} names port {port!r}, but the container lacks a port of that name"
            )
        how["port"] = number
    return how


def ports_of(container: Container) -> dict[str, int]:
    """Return the numbers of a container's ports, by port name."""
    return {
        port["name"]: port["containerPort"]
        for port in container.get("ports") or ()
        if "name" in port and "containerPort" in port
    }
