"""`meshwright check` and `meshwright agent check`: check a server, a cluster or a machine."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from meshwright.cli.errors import CommandFailed, Status
from meshwright.cli.options import (
    AdminPort,
    AsJson,
    ControlPlane,
    Domain,
    Shared,
    admin_at,
    host_port,
    server_addresses,
    trust_domain_of,
)
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import ADS_PORT, PROXY_UID, STATUS_PORT

if TYPE_CHECKING:
    from meshwright.cli.checking.judgements.check import Check

_CREDENTIALS: Final = Path("/etc/meshwright/credentials")
Before = Annotated[
    bool, typer.Option("--before", help="Check if an installation would work, before anything is installed.")
]


def check(
    state: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_STATE", help="State directory of the server, for example /var/lib/meshwright."
        ),
    ] = None,
    mesh: Annotated[
        Path | None,
        typer.Option(envvar="MESHWRIGHT_MESH", help="Directory of manifests, if the server is down."),
    ] = None,
    kubernetes: Annotated[
        bool | None,
        typer.Option(
            "--kubernetes",
            help="Check the installation in a cluster from outside. With --state: the server reads a "
            "cluster.",
        ),
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Kubeconfig file of the cluster.")] = None,
    kube_context: Annotated[
        str | None, typer.Option("--kube-context", "--context", help="Context of the kubeconfig file.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(envvar="MESHWRIGHT_CONFIG", help="YAML file of settings, if the server is down."),
    ] = None,
    ads_address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="ADS address, if the server is down."),
    ] = None,
    http_address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="HTTP address, if the server is down."),
    ] = None,
    debug_address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Debug address, if the server is down."),
    ] = None,
    envoy: Annotated[
        str,
        typer.Option(
            envvar="MESHWRIGHT_ENVOY",
            help="Envoy program to check with --before: a path, or a name to find in $PATH.",
        ),
    ] = "envoy",
    shared: Shared = False,
    control_plane: ControlPlane = "",
    values: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Values file of the chart. Needs --kubernetes.",
            show_default="the values of the installation; with --before, the chart's defaults",
        ),
    ] = None,
    before: Before = False,
    as_json: AsJson = False,
) -> None:
    """Check a server or an installation, and suggest a fix for each problem.

    A running server is found through its state directory. If the server is down,
    give the same options as to `meshwright serve`:

      meshwright check --state /var/lib/meshwright --mesh /etc/meshwright/mesh

    With --kubernetes and without --state, the command checks the installation in
    a cluster from outside, with the rights of your kubeconfig.

    Exit status: 0 if no check failed (there may be warnings), 1 if one failed, 2
    if it is not clear what to check.
    """
    from meshwright.cli.checking.server import server
    from meshwright.cli.checking.server import stopped_server as stopped
    from meshwright.cli.checking.server.paths import paths_of_flags

    # With one of these options, --kubernetes is a setting of the server to check.
    of_a_server = (state, mesh, config, ads_address, http_address, debug_address)
    if kubernetes and not any(of_a_server):
        _end(_cluster(kubeconfig, kube_context or "", control_plane, values, before=before), as_json=as_json)
        return
    if values is not None:
        raise CommandFailed(
            "--values applies only to an installation in a cluster: add --kubernetes and remove --state, or "
            "remove --values"
        )
    flags: dict[str, object] = {
        "state": state,
        "mesh": mesh,
        "kubernetes": kubernetes,
        "kubeconfig": kubeconfig,
        "kube_context": kube_context,
        "config": config,
        "ads_address": ads_address,
        "http_address": http_address,
        "debug_address": debug_address,
        "shared_state": True if shared else None,
    }
    server_paths = paths_of_flags(flags)
    _end(stopped.before(server_paths, envoy) if before else server.checks(server_paths), as_json=as_json)


def _cluster(
    kubeconfig: Path | None, context: str, control_plane: str, values: Path | None, *, before: bool
) -> "Iterable[Check]":
    from meshwright.cli.checking.cluster.cluster import Place, chart_of, checks
    from meshwright.controller.kubernetes.home import HOME

    home = control_plane or HOME
    chart = chart_of(values, home) if values or before else None
    return checks(Place(kubeconfig, context, home, chart), before=before)


def agent_check(
    credentials: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_CREDENTIALS",
            help="Directory with the proxy's credentials: proxy.pem, proxy.key, ca.pem.",
            show_default="/etc/meshwright/credentials, or `credentials` in --run, as in Pods",
        ),
    ] = None,
    ads: Annotated[
        str | None,
        typer.Option(
            envvar="MESHWRIGHT_ADS",
            metavar="HOST:PORT,...",
            help="Address of the control plane's ADS server, if the agent does not answer; several, "
            "separated by commas, if several servers serve the mesh.",
        ),
    ] = None,
    run_directory: Annotated[
        Path, typer.Option("--run", envvar="MESHWRIGHT_RUN", help="Directory of the agent's own files.")
    ] = Path("/run/meshwright"),
    envoy: Annotated[
        str | None,
        typer.Option(
            envvar="MESHWRIGHT_ENVOY",
            help="Envoy program: a path, or a name to find in $PATH.",
            show_default="the agent's Envoy, or envoy",
        ),
    ] = None,
    admin: AdminPort = None,
    status: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Status address of the agent.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    application_port: Annotated[
        list[int] | None,
        typer.Option(
            help="Port of the application to check in addition to the ports that Envoy knows. "
            "Repeat for more."
        ),
    ] = None,
    application_address: Annotated[str, typer.Option(help="Address of the application.")] = "127.0.0.1",
    hosts_file: Annotated[
        Path, typer.Option(help="Hosts file in which the agent may maintain the names of services.")
    ] = Path("/etc/hosts"),
    cluster_domain: Annotated[
        str, typer.Option(help="DNS domain of services, the last part of their names.")
    ] = "cluster.local",
    uid: Annotated[int, typer.Option(help="User id of the proxy, for --before.")] = PROXY_UID,
    shared_credentials: Annotated[
        bool,
        typer.Option(
            "--shared-credentials",
            envvar="MESHWRIGHT_SHARED_CREDENTIALS",
            help="Accept a private key that other users can read.",
        ),
    ] = False,
    trust_domain: Domain = None,
    before: Before = False,
    as_json: AsJson = False,
) -> None:
    """Check the sidecar of this machine or Pod, and suggest a fix for each problem.

    In a Pod, for example:

      kubectl exec POD -c meshwright-sidecar -- meshwright agent check

    Run the command as root if possible, because only root can read the iptables
    rules.

    Exit status: 0 if no check failed (there may be warnings), 1 if one failed, 2
    if it is not clear what to check.
    """
    from meshwright.agent.reach.place import Place, place
    from meshwright.cli.checking.machine import machine
    from meshwright.cli.checking.machine.control_plane import DialSettings

    where = DialSettings(
        credentials=(credentials or _credentials(run_directory)).absolute(),
        ads=() if ads is None else server_addresses("--ads", ads, ADS_PORT),
        run=run_directory.absolute(),
        envoy=envoy,
        admin=admin_at(admin, run_directory),
        status=host_port("--status", status, STATUS_PORT),
        applications=tuple(
            host_port("--application-port", str(HostPort(application_address, number)))
            for number in application_port or ()
        ),
        hosts=hosts_file.absolute(),
        cluster_domain=cluster_domain,
        shared=shared_credentials or (credentials is None and place() is Place.POD),
        uid=uid,
        trust_domain=trust_domain_of(trust_domain),
    )
    _end(machine.before(where) if before else machine.checks(where), as_json=as_json)


def _credentials(run: Path) -> Path:
    """Return the directory of credentials: the usual one, or `credentials` in `run`, as in a Pod."""
    joined = run / "credentials"
    return joined if joined.is_dir() and not _CREDENTIALS.exists() else _CREDENTIALS


def _end(result: "Iterable[Check]", *, as_json: bool) -> None:
    from meshwright.cli.checking.judgements.check import Status as Found
    from meshwright.cli.checking.judgements.check import worst
    from meshwright.cli.checking.printing import show

    checks = tuple(result)
    show(checks, as_json=as_json)
    if worst(checks) is Found.FAILED:
        raise typer.Exit(Status.NO)
