"""`meshwright cni`: the node's plug-in, by which no pod sets its rules itself."""

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

Networks = Annotated[Path, typer.Option(help="The node's networks, where the runtime looks for them.")]
Programs = Annotated[Path, typer.Option(help="The node's plug-ins, where the runtime looks for them.")]

cni = typer.Typer(help="Have the node set the rules of its pods: the CNI plug-in.", no_args_is_help=True)


@cni.command()
def install(
    context: typer.Context,
    networks: Networks = _NODE.networks,
    programs: Programs = _NODE.programs,
    run: Annotated[
        Path, typer.Option(help="The daemon's own directory; it must be called so on the node as well.")
    ] = _NODE.run,
    status: Annotated[str, typer.Option(metavar="HOST:PORT", help="Readiness and metrics.")] = str(
        _NODE.status
    ),
    daemon_set: Annotated[
        str,
        typer.Option(
            metavar="NAMESPACE/NAME",
            envvar="MESHWRIGHT_CNI_DAEMON_SET",
            help="What this is of: while it is there the plug-in stays when this ends.",
        ),
    ] = "",
    node: Annotated[
        str,
        typer.Option(
            envvar="MESHWRIGHT_CNI_NODE",
            help="The node's name: pods there that came before the plug-in have their rules set, too.",
        ),
    ] = "",
    netns: Annotated[Path, typer.Option(help="Where the runtime has the networks of pods.")] = _NODE.netns,
    kubeconfig: Kubeconfig = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    as_json: Annotated[
        bool, typer.Option("--json", help="Log as JSON, wherever standard error goes.")
    ] = False,
) -> None:
    """Put the plug-in into the node's list, keep it there, and serve it until SIGTERM, which takes it out.

    Status: 0 if it was told to stop, 2 if it could not begin, or not be taken out.
    """
    from meshwright.cli.process.environment import of_program, say_unknown
    from meshwright.cli.process.signals import until_told
    from meshwright.controller.process import logs
    from meshwright.kube.connection.connection import found
    from meshwright.kube.errors import KubeError
    from meshwright.kubernetes.cni.app import run as running
    from meshwright.kubernetes.cni.program import ProgramError

    namespace, slash, name = daemon_set.partition("/")
    if daemon_set and not (namespace and slash and name):
        raise CommandFailed(f"--daemon-set is {daemon_set!r}: must be NAMESPACE/NAME")
    at = host_port("--status", status, STATUS_PORT)
    settings = Settings(networks, programs, run, at, daemon_set, node, netns)
    try:
        style = logs.LogFormat.JSON if as_json else logs.LogFormat.AUTO
        logs.configure(logs.LogLevel(log_level), style)
        say_unknown(os.environ, of_program(context))
        asyncio.run(until_told(partial(running, settings, found(kubeconfig, ""))))
    except (ProgramError, KubeError, OSError, ValueError) as error:
        raise CommandFailed(error) from error


@cni.command()
def uninstall(
    networks: Networks = _NODE.networks, programs: Programs = _NODE.programs, as_json: AsJson = False
) -> None:
    """Take the plug-in out of a node on which its daemon does not run any more."""
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
            f"taken out of {', '.join(changed)}" if changed else "it is in none of the node's networks"
        )
