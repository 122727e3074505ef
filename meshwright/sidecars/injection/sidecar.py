"""What a driver's sidecar is: its container, and whether the pod's traffic is led through it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from meshwright.mesh.workload import Capture
from meshwright.sidecars.contract.kubernetes import spec_of
from meshwright.sidecars.contract.pod import InjectorContext, Placement, TokenEnrolment
from meshwright.sidecars.injection import names, scraping
from meshwright.sidecars.injection.restoration import restored
from meshwright.sidecars.layout import AUTHORITY_FILE, PROXY_UID, STATUS_PORT

PROGRAM: Final = "meshwright"
"""The command that the images have."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A container by its differences between drivers.

    `intercepts`: the pod's traffic is led through it, which Linux can. `carries_out_probes`: it answers the
    rewritten probes, as the agent does. `joins`: it comes by its certificate itself (`context.joining`).
    `ready_port` None leaves its readiness to itself. `raw_sockets`: its command begins as root, and becomes
    the proxy's user with CAP_NET_RAW alone.
    """

    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    intercepts: bool = False
    raw_sockets: bool = False
    carries_out_probes: bool = False
    joins: bool = False
    ready_port: int | None = None


def control_plane(context: InjectorContext) -> str:
    """Return where the driver's control plane is dialled, from within the cluster."""
    return f"{_host(context)}:{context.selection.proxy_server_port}"


def agent_sidecar(context: InjectorContext) -> Sidecar:
    """Return the sidecar that is the agent, with Envoy below it."""
    how = context.interception
    return Sidecar(
        command=(*(_with_raw_sockets(context) if how.capture is Capture.TPROXY else ()), PROGRAM, "agent"),
        arguments=(
            *_credentials(context),
            *("--ads", control_plane(context)),
            *("--run", f"{names.RUN_DIRECTORY}/agent"),
            *("--probes", f"{names.POD_DIRECTORY}/{names.PROBES_FILE}"),
            *_application_metrics(context),
            *("--envoy-log-level", context.config.sidecar.log_level),
            *_ending(context.placement),
        ),
        intercepts=True,
        raw_sockets=how.capture is Capture.TPROXY,
        carries_out_probes=True,
        joins=context.joining is not None,
        ready_port=STATUS_PORT,
    )


def _application_metrics(context: InjectorContext) -> tuple[str, ...]:
    """Return where the agent has the application's metrics, if it is to tell them with its own."""
    url = scraping.merged(context, restored(context.pod))
    return ("--application-metrics", url) if url else ()


def _ending(placement: Placement) -> tuple[str, ...]:
    """Return how long the agent serves on at least when it is told to end.

    A native one is told when all else in the pod has ended: nobody is left who could answer, and a Job is
    over when it is.
    """
    return ("--termination-least-seconds", "0") if placement is Placement.NATIVE else ()


def _credentials(context: InjectorContext) -> tuple[str, ...]:
    """Return where the agent has its certificate, and how it comes by it."""
    match context.joining:
        case None:
            # A Secret's files belong to root, and their modes are the kubelet's.
            return ("--credentials", names.CREDENTIALS_DIRECTORY, "--shared-credentials")
        case TokenEnrolment() as joining:
            return (
                *("--credentials", f"{names.RUN_DIRECTORY}/credentials"),
                *("--enrol", f"{_host(context)}:{joining.enrolment_port}"),
                *("--kubernetes-token", f"{names.TOKEN_DIRECTORY}/{names.TOKEN_FILE}"),
                *("--ca", f"{names.ROOTS_DIRECTORY}/{AUTHORITY_FILE}"),
                *("--renewal", f"{_host(context)}:{joining.renewal_port}"),
            )


def _with_raw_sockets(context: InjectorContext) -> tuple[str, ...]:
    """Return what makes the proxy's user of root, with CAP_NET_RAW.

    Listening for TPROXY takes it, and Kubernetes gives it to no container that begins as another user than
    root: capabilities that are added are lost where a process is not root, unless they are ambient. The
    group that the pod's volumes belong to is kept: the token is readable by it alone.
    """
    group = (spec_of(context.pod).get("securityContext") or {}).get("fsGroup")
    groups = ("--clear-groups",) if group is None else ("--groups", str(group))
    return (
        "setpriv",
        *("--reuid", str(PROXY_UID), "--regid", str(PROXY_UID), *groups),
        *("--inh-caps", "-all,+net_raw", "--ambient-caps", "+net_raw", "--"),
    )


def _host(context: InjectorContext) -> str:
    return f"{names.CONTROL_PLANE_SERVICE}.{context.control_plane_namespace}.svc"
