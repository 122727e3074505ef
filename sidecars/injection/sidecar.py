"""What a driver's sidecar is: its container, and whether the pod's traffic is led through it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sidecars.injection import names
from sidecars.layout import PROXY_UID, READY_PATH, STATUS_PORT
from sidecars.pod import InjectorContext


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A container by its differences between drivers.

    `intercepts`: the pod's traffic is led through it, which Linux can. `carries_out_probes`: it answers the
    rewritten probes, as the agent does. `ready_port` None leaves its readiness to itself.
    """

    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    intercepts: bool = False
    carries_out_probes: bool = False
    ready_port: int | None = None


def control_plane(context: InjectorContext) -> str:
    """Return where the driver's control plane is dialled, from within the cluster."""
    host = f"{names.CONTROL_PLANE_SERVICE}.{context.control_plane_namespace}.svc"
    return f"{host}:{context.selection.proxy_server_port}"


def agent_sidecar(context: InjectorContext) -> Sidecar:
    """Return the sidecar that is the agent, with Envoy below it."""
    return Sidecar(
        command=("meshwright", "agent"),
        arguments=(
            *("--credentials", names.CREDENTIALS_DIRECTORY),
            *("--ads", control_plane(context)),
            *("--run", f"{names.RUN_DIRECTORY}/agent"),
            *("--probes", f"{names.POD_DIRECTORY}/{names.PROBES_FILE}"),
            *("--envoy-log-level", context.config.sidecar.log_level),
        ),
        intercepts=True,
        carries_out_probes=True,
        ready_port=STATUS_PORT,
    )


def container(context: InjectorContext, sidecar: Sidecar, image: str) -> dict[str, Any]:
    """Return the sidecar's container."""
    mounts = [
        {"name": names.CREDENTIALS_VOLUME, "mountPath": names.CREDENTIALS_DIRECTORY, "readOnly": True},
        {"name": names.RUN_VOLUME, "mountPath": names.RUN_DIRECTORY},
    ]
    if sidecar.carries_out_probes:
        mounts.append({"name": names.POD_VOLUME, "mountPath": names.POD_DIRECTORY, "readOnly": True})
    made: dict[str, Any] = {
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
        asked = {"path": READY_PATH, "port": sidecar.ready_port, "scheme": "HTTP"}
        made["readinessProbe"] = {"httpGet": asked, "periodSeconds": 2, "failureThreshold": 30}
    return made


def confined() -> dict[str, Any]:
    """Return a security context without any right: the proxy's user, on Linux."""
    return {
        "runAsUser": PROXY_UID,
        "runAsGroup": PROXY_UID,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
