"""The sidecar of a driver: its container, and whether it intercepts the pod's traffic."""

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
"""The command in the images."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The properties of a container that differ between drivers.

    - `intercepts`: the pod's traffic is redirected through it (Linux only).
    - `carries_out_probes`: it answers the rewritten probes, as the agent does.
    - `joins`: it enrols by itself (`context.joining`).
    - `ready_port`: the port of its readiness probe; None means that it declares its own.
    - `raw_sockets`: its command starts as root and switches to the proxy's user with CAP_NET_RAW.
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
    """Return the address of the driver's control plane, for example `meshwright.mesh.svc:15128`."""
    return f"{_host(context)}:{context.selection.proxy_server_port}"


def agent_sidecar(context: InjectorContext) -> Sidecar:
    """Return the sidecar that is the agent, which runs Envoy."""
    return _for_gateway(context) if context.gateway else _for_application(context)


def _for_gateway(context: InjectorContext) -> Sidecar:
    """Return the agent of a gateway: there is no traffic to intercept, and no application to probe."""
    return Sidecar(
        command=(PROGRAM, "agent"),
        arguments=(
            *_credentials(context),
            *("--ads", control_plane(context)),
            *("--run", f"{names.RUN_DIRECTORY}/agent"),
            *("--envoy-log-level", context.config.sidecar.log_level),
        ),
        joins=context.joining is not None,
        ready_port=STATUS_PORT,
    )


def _for_application(context: InjectorContext) -> Sidecar:
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
    """Return the agent's options for scraping the application; none if nothing is merged."""
    url = scraping.merged(context, restored(context.pod))
    return ("--application-metrics", url) if url else ()


def _ending(placement: Placement) -> tuple[str, ...]:
    """Return the option for the least time that the agent serves after SIGTERM.

    A native sidecar receives SIGTERM after all other containers have ended. No process is left that could
    answer a request, and a Job completes only when the sidecar ends, so the time is 0.
    """
    return ("--termination-least-seconds", "0") if placement is Placement.NATIVE else ()


def _credentials(context: InjectorContext) -> tuple[str, ...]:
    """Return the options for the agent's certificate and for its enrolment."""
    match context.joining:
        case None:
            # The files of a Secret belong to root, with modes set by the kubelet, so they must be accepted.
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
    """Return the command prefix that switches from root to the proxy's user and keeps CAP_NET_RAW.

    Listening for TPROXY needs this capability. Kubernetes cannot give it to a container that starts as
    another user, because added capabilities are lost without root unless they are ambient. The group of the
    pod's volumes is kept, because only this group can read the token.
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
