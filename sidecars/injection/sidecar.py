"""What a driver's sidecar is: its container, and whether the pod's traffic is led through it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mesh.workload import Capture
from sidecars.contract.kubernetes import Container, HttpGet, SecurityContext, VolumeMount
from sidecars.contract.pod import InjectorContext
from sidecars.injection import names
from sidecars.layout import PROXY_UID, READY_PATH, STATUS_PORT

_WITH_RAW_SOCKETS: Final = (
    "setpriv",
    *("--reuid", str(PROXY_UID), "--regid", str(PROXY_UID), "--clear-groups"),
    *("--inh-caps", "-all,+net_raw", "--ambient-caps", "+net_raw", "--"),
)
"""Listening for TPROXY takes CAP_NET_RAW, which Kubernetes gives to no container that begins as another user
than root: capabilities that are added are lost where a process is not root, unless they are ambient."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A container by its differences between drivers.

    `intercepts`: the pod's traffic is led through it, which Linux can. `carries_out_probes`: it answers the
    rewritten probes, as the agent does. `ready_port` None leaves its readiness to itself. `raw_sockets`: its
    command begins as root, and becomes the proxy's user with CAP_NET_RAW alone.
    """

    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    intercepts: bool = False
    raw_sockets: bool = False
    carries_out_probes: bool = False
    ready_port: int | None = None


def control_plane(context: InjectorContext) -> str:
    """Return where the driver's control plane is dialled, from within the cluster."""
    host = f"{names.CONTROL_PLANE_SERVICE}.{context.control_plane_namespace}.svc"
    return f"{host}:{context.selection.proxy_server_port}"


def agent_sidecar(context: InjectorContext) -> Sidecar:
    """Return the sidecar that is the agent, with Envoy below it."""
    how = context.interception
    both_families = ("--status", f"[::]:{STATUS_PORT}") if how.ipv6 else ()
    return Sidecar(
        command=(*(_WITH_RAW_SOCKETS if how.capture is Capture.TPROXY else ()), "meshwright", "agent"),
        arguments=(
            *("--credentials", names.CREDENTIALS_DIRECTORY),
            "--shared-credentials",  # a Secret's files belong to root, and their modes are the kubelet's
            *("--ads", control_plane(context)),
            *("--run", f"{names.RUN_DIRECTORY}/agent"),
            *("--probes", f"{names.POD_DIRECTORY}/{names.PROBES_FILE}"),
            *("--envoy-log-level", context.config.sidecar.log_level),
            *both_families,
        ),
        intercepts=True,
        raw_sockets=how.capture is Capture.TPROXY,
        carries_out_probes=True,
        ready_port=STATUS_PORT,
    )


def container(context: InjectorContext, sidecar: Sidecar, image: str) -> Container:
    """Return the sidecar's container."""
    mounts: list[VolumeMount] = [
        {"name": names.CREDENTIALS_VOLUME, "mountPath": names.CREDENTIALS_DIRECTORY, "readOnly": True},
        {"name": names.RUN_VOLUME, "mountPath": names.RUN_DIRECTORY},
    ]
    if sidecar.carries_out_probes:
        mounts.append({"name": names.POD_VOLUME, "mountPath": names.POD_DIRECTORY, "readOnly": True})
    made: Container = {
        "name": names.SIDECAR_CONTAINER,
        "image": image,
        "imagePullPolicy": context.image_pull_policy.value,
        "volumeMounts": mounts,
    }
    if sidecar.command:
        made["command"] = list(sidecar.command)
    if sidecar.arguments:
        made["args"] = list(sidecar.arguments)
    if sidecar.environment:
        made["env"] = [
            {"name": name, "value": sidecar.environment[name]} for name in sorted(sidecar.environment)
        ]
    if sidecar.ready_port is not None:
        made["ports"] = [{"name": "mesh-status", "containerPort": sidecar.ready_port, "protocol": "TCP"}]
        asked: HttpGet = {"path": READY_PATH, "port": sidecar.ready_port, "scheme": "HTTP"}
        made["readinessProbe"] = {"httpGet": asked, "periodSeconds": 2, "failureThreshold": 30}
    return made


def confined(*, raw_sockets: bool) -> SecurityContext:
    """Return a security context for Linux without any right, as the proxy's user.

    With `raw_sockets` it is root that may become that user and hand CAP_NET_RAW on, and nothing else.
    """
    if raw_sockets:
        return {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"add": ["NET_RAW", "SETGID", "SETUID"], "drop": ["ALL"]},
        }
    return {
        "runAsUser": PROXY_UID,
        "runAsGroup": PROXY_UID,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
