"""`meshwright check` and `meshwright agent check`: whether a server, or a machine, is well."""

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
    trust_domain_of,
)
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import PROXY_UID, STATUS_PORT

if TYPE_CHECKING:
    from meshwright.cli.checking.judgements.check import Check

_CREDENTIALS: Final = Path("/etc/meshwright/credentials")
Before = Annotated[bool, typer.Option("--before", help="Nothing is set up yet: could it be?")]


def check(
    state: Annotated[
        Path | None, typer.Option(envvar="MESHWRIGHT_STATE", help="State directory of the server.")
    ] = None,
    mesh: Annotated[
        Path | None, typer.Option(envvar="MESHWRIGHT_MESH", help="Manifests, if no server runs.")
    ] = None,
    kubernetes: Annotated[
        bool | None,
        typer.Option(
            "--kubernetes", help="The installation in a cluster; with --state: a server that reads one."
        ),
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="How that is reached.")] = None,
    kube_context: Annotated[
        str | None, typer.Option("--kube-context", "--context", help="Of that file.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_CONFIG", help="The server's YAML file of settings, if it does not run."
        ),
    ] = None,
    ads_address: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="If it does not run.")] = None,
    http_address: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="If it does not run.")] = None,
    debug_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="If it does not run.")
    ] = None,
    envoy: Annotated[str, typer.Option(envvar="MESHWRIGHT_ENVOY", help="For --before.")] = "envoy",
    shared: Shared = False,
    control_plane: ControlPlane = "",
    values: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The chart's, of the installation in a cluster.")
    ] = None,
    before: Before = False,
    as_json: AsJson = False,
) -> None:
    """Say of the server, thing by thing, whether it is well, and what is to be done.

    A server that runs is asked what it was told; else that is to be said here, as to `serve`. Without any of
    that, --kubernetes looks from outside at what is installed in a cluster, as who asks may see it. Status: 0
    if nothing has failed, 1 if something has, 2 where it is not known what to look at.
    """
    from meshwright.cli.checking.server import server
    from meshwright.cli.checking.server import stopped_server as stopped
    from meshwright.cli.checking.server.paths import told_by

    of_a_server = (state, mesh, config, ads_address, http_address, debug_address)
    if kubernetes and not any(of_a_server):
        _end(_cluster(kubeconfig, kube_context or "", control_plane, values, before=before), as_json=as_json)
        return
    if values is not None:
        raise CommandFailed("--values is of an installation in a cluster: give --kubernetes, and no --state")
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
    told = told_by(flags)
    _end(stopped.before(told, envoy) if before else server.checks(told), as_json=as_json)


def _cluster(
    kubeconfig: Path | None, context: str, control_plane: str, values: Path | None, *, before: bool
) -> "Iterable[Check]":
    from meshwright.cli.checking.cluster.cluster import Place, checks, manifests
    from meshwright.controller.kubernetes.home import HOME

    home = control_plane or HOME
    return checks(Place(kubeconfig, context, home, manifests(values, home)), before=before)


def agent_check(
    credentials: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_CREDENTIALS",
            help="With proxy.pem, proxy.key, ca.pem.",
            show_default="/etc/meshwright/credentials, or `credentials` in --run, as in Pods",
        ),
    ] = None,
    ads: Annotated[
        str | None,
        typer.Option(
            envvar="MESHWRIGHT_ADS", metavar="HOST:PORT", help="The control plane, if no agent can be asked."
        ),
    ] = None,
    run_directory: Annotated[
        Path, typer.Option("--run", envvar="MESHWRIGHT_RUN", help="The agent's own directory.")
    ] = Path("/run/meshwright"),
    envoy: Annotated[
        str | None,
        typer.Option(envvar="MESHWRIGHT_ENVOY", help="Envoy itself.", show_default="the agent's, or envoy"),
    ] = None,
    admin: AdminPort = None,
    status: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The agent's server.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    application_port: Annotated[
        list[int] | None, typer.Option(help="Beside those that Envoy knows; repeat for more.")
    ] = None,
    application_address: Annotated[str, typer.Option(help="Where these are.")] = "127.0.0.1",
    hosts_file: Annotated[Path, typer.Option(help="Where names of services may be kept.")] = Path(
        "/etc/hosts"
    ),
    cluster_domain: Annotated[str, typer.Option(help="The last part of services' names.")] = "cluster.local",
    uid: Annotated[int, typer.Option(help="The proxy's user, for --before.")] = PROXY_UID,
    shared_credentials: Annotated[
        bool,
        typer.Option(
            "--shared-credentials",
            envvar="MESHWRIGHT_SHARED_CREDENTIALS",
            help="Although others can read the key.",
        ),
    ] = False,
    trust_domain: Domain = None,
    before: Before = False,
    as_json: AsJson = False,
) -> None:
    """Say of this machine or Pod, thing by thing, whether its sidecar is well, and what is to be done.

    In a Pod: `kubectl exec POD -c meshwright-sidecar -- meshwright agent check`.

    As root it sees more: rules can be read by nobody else. Status: 0 if nothing has failed, 1 if something
    has, 2 where it is not known what to look at.
    """
    from meshwright.agent.reach.place import Place, place
    from meshwright.cli.checking.machine import machine
    from meshwright.cli.checking.machine.control_plane import DialSettings

    where = DialSettings(
        credentials=(credentials or _credentials(run_directory)).absolute(),
        ads=None if ads is None else host_port("--ads", ads),
        run=run_directory.absolute(),
        envoy=envoy,
        admin=admin_at(admin, run_directory),
        status=host_port("--status", status, STATUS_PORT),
        applications=tuple(
            host_port("--application-port", str(HostPort(application_address, each)))
            for each in application_port or ()
        ),
        hosts=hosts_file.absolute(),
        cluster_domain=cluster_domain,
        shared=shared_credentials or (credentials is None and place() is Place.POD),
        uid=uid,
        trust_domain=trust_domain_of(trust_domain),
    )
    _end(machine.before(where) if before else machine.checks(where), as_json=as_json)


def _credentials(run: Path) -> Path:
    """Return where credentials are: at a machine's place, or in `run`, where an agent in a Pod has them."""
    joined = run / "credentials"
    return joined if joined.is_dir() and not _CREDENTIALS.exists() else _CREDENTIALS


def _end(found: "Iterable[Check]", *, as_json: bool) -> None:
    from meshwright.cli.checking.judgements.check import Status as Found
    from meshwright.cli.checking.judgements.check import worst
    from meshwright.cli.checking.printing import show

    checks = tuple(found)
    show(checks, as_json=as_json)
    if worst(checks) is Found.FAILED:
        raise typer.Exit(Status.NO)
