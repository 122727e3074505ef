"""The sidecar's container before overlays and the settings of the pod's author are applied."""

from typing import Final

from meshwright.sidecars.contract.kubernetes import Container, HttpGet, Lifecycle, Probe, SecurityContext
from meshwright.sidecars.contract.pod import InjectorContext, Placement
from meshwright.sidecars.injection import names
from meshwright.sidecars.injection.containers.volumes import mounts
from meshwright.sidecars.injection.sidecar import PROGRAM, Sidecar
from meshwright.sidecars.layout import PROXY_UID, READY_PATH

_STARTS_WITHIN: Final = 600
"""Seconds, and number of probes: the API server may report a pod to the mesh late."""


SECCOMP: Final = {"type": "RuntimeDefault"}
"""Seccomp profile of the runtime, which Pod Security `restricted` requires of every container."""


def container(context: InjectorContext, sidecar: Sidecar, image: str) -> Container:
    """Return the sidecar's container."""
    made: Container = {
        "name": names.SIDECAR_CONTAINER,
        "image": image,
        "imagePullPolicy": context.image_pull_policy.value,
        "volumeMounts": list(mounts(sidecar)),
    }
    if sidecar.command:
        made["command"] = list(sidecar.command)
    if sidecar.arguments:
        made["args"] = list(sidecar.arguments)
    if sidecar.environment:
        made["env"] = [
            {"name": name, "value": sidecar.environment[name]} for name in sorted(sidecar.environment)
        ]
    if context.resources:
        made["resources"] = {name: dict(resource) for name, resource in context.resources.items()}
    if sidecar.ready_port is not None:
        _ask(made, sidecar.ready_port, context.placement)
    if sidecar.carries_out_probes:
        made["lifecycle"] = _hooks(context.placement)
    return made


def _ask(made: Container, port: int, placement: Placement) -> None:
    """Add the probes by which the kubelet checks that the sidecar has its configuration.

    Containers after a native sidecar start when its startup probe has succeeded.
    """
    made["ports"] = [{"name": "mesh-status", "containerPort": port, "protocol": "TCP"}]
    asked: HttpGet = {"path": READY_PATH, "port": port, "scheme": "HTTP"}
    ready: Probe = {"httpGet": asked, "periodSeconds": 2, "failureThreshold": 30}
    made["readinessProbe"] = ready
    if placement is Placement.NATIVE:
        again: HttpGet = {"path": READY_PATH, "port": port, "scheme": "HTTP"}
        started: Probe = {"httpGet": again, "periodSeconds": 1, "failureThreshold": _STARTS_WITHIN}
        made["startupProbe"] = started


def _hooks(placement: Placement) -> Lifecycle:
    """Return the hooks that keep the application from running without a proxy, at its start and end.

    The preStop hook of a native sidecar starts to drain when the application is stopped; Kubernetes ends the
    sidecar afterwards. The containers after a classic sidecar start when its postStart hook has returned.
    """
    match placement:
        case Placement.NATIVE:
            return {"preStop": {"exec": {"command": [PROGRAM, "agent", "drain"]}}}
        case Placement.CLASSIC:
            wait = [PROGRAM, "agent", "wait", "--seconds", str(_STARTS_WITHIN)]
            return {"postStart": {"exec": {"command": wait}}}


def confined(*, raw_sockets: bool) -> SecurityContext:
    """Return the security context of the proxy's user without any right, as in `restricted`.

    With `raw_sockets` the container starts as root, which can only switch to the proxy's user and pass on
    CAP_NET_RAW.
    """
    if raw_sockets:
        return {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"add": ["NET_RAW", "SETGID", "SETUID"], "drop": ["ALL"]},
            "seccompProfile": dict(SECCOMP),
        }
    return {
        "runAsUser": PROXY_UID,
        "runAsGroup": PROXY_UID,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": dict(SECCOMP),
    }
