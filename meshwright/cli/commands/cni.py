"""`meshwright cni`: the node's CNI plug-in, which sets the interception rules of Pods."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, Kubeconfig, host_port
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import print_json
from meshwright.kubernetes.cni.settings import STATUS_PORT, Settings

_NODE: Final = Settings()

Networks = Annotated[Path, typer.Option(help="Directory of the node's CNI network configurations.")]
Programs = Annotated[Path, typer.Option(help="Directory of the node's CNI plug-in programs.")]

cni = typer.Typer(help="Install the CNI plug-in, which intercepts the traffic of Pods.", no_args_is_help=True)


@cni.command()
def install(
    context: typer.Context,
    networks: Networks = _NODE.networks,
    programs: Programs = _NODE.programs,
    run: Annotated[
        Path,
        typer.Option(help="Directory of the daemon's own files. It must have the same path on the node."),
    ] = _NODE.run,
    status: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Listen address for readiness and metrics.")
    ] = str(_NODE.status),
    daemon_set: Annotated[
        str,
        typer.Option(
            metavar="NAMESPACE/NAME",
            envvar="MESHWRIGHT_CNI_DAEMON_SET",
            help="DaemonSet of this daemon. While the DaemonSet exists, the plug-in stays "
            "installed when the daemon stops.",
        ),
    ] = "",
    node: Annotated[
        str,
        typer.Option(
            envvar="MESHWRIGHT_CNI_NODE",
            help="Name of the node. If set, running Pods that started before the plug-in get "
            "their rules too.",
        ),
    ] = "",
    netns: Annotated[Path, typer.Option(help="Directory of the Pods' network namespaces.")] = _NODE.netns,
    kubeconfig: Kubeconfig = None,
    log_level: Annotated[str, typer.Option(help="Log level: debug, info, warning or error.")] = "info",
    as_json: Annotated[bool, typer.Option("--json", help="Log as JSON, even on a terminal.")] = False,
) -> None:
    """Install the CNI plug-in on this node, and serve it until SIGTERM.

    The chart runs this command in a DaemonSet if cni.enabled is true. The plug-in
    sets the iptables rules of Pods, so that Pods need no NET_ADMIN capability.
    SIGTERM removes the plug-in, unless its DaemonSet still exists.

    Exit status: 0 after SIGTERM, 2 if the plug-in could not be installed or
    removed.
    """
    from meshwright.cli.process.environment import of_program, warn_of_unknown
    from meshwright.cli.process.signals import run_until_signal
    from meshwright.controller.process import logs
    from meshwright.kube.connection.connection import find_connection
    from meshwright.kube.errors import KubeError
    from meshwright.kubernetes.cni.app import run as running
    from meshwright.kubernetes.cni.program import ProgramError

    namespace, slash, name = daemon_set.partition("/")
    if daemon_set and not (namespace and slash and name):
        raise CommandFailed(
            f"--daemon-set is {daemon_set!r}: must be NAMESPACE/NAME, for example kube-system/meshwright-cni"
        )
    at = host_port("--status", status, STATUS_PORT)
    settings = Settings(networks, programs, run, at, daemon_set, node, netns)
    try:
        style = logs.LogFormat.JSON if as_json else logs.LogFormat.AUTO
        logs.configure(logs.LogLevel(log_level), style)
        warn_of_unknown(os.environ, of_program(context))
        asyncio.run(run_until_signal(partial(running, settings, find_connection(kubeconfig, ""))))
    except (ProgramError, KubeError, OSError, ValueError) as error:
        raise CommandFailed(error) from error


@cni.command()
def uninstall(
    networks: Networks = _NODE.networks, programs: Programs = _NODE.programs, as_json: AsJson = False
) -> None:
    """Remove the CNI plug-in from this node, if its daemon no longer runs."""
    from meshwright.kubernetes.cni.app import uninstall as taken_out
    from meshwright.kubernetes.cni.program import ProgramError

    try:
        changed = taken_out(Settings(networks, programs))
    except (ProgramError, OSError) as error:
        raise CommandFailed(error) from error
    if as_json:
        print_json({"changed": list(changed)})
    else:
        print_lines(
            f"removed from {', '.join(changed)}" if changed else "not installed in any network of the node"
        )
