"""The program `meshwright`: the list of all commands.

Each command imports heavy packages itself, so that `--help` answers fast.
"""

from typing import Annotated

import typer

from meshwright.cli.commands.agent import agent
from meshwright.cli.commands.bootstrap import bootstrap
from meshwright.cli.commands.bug_report import bug_report
from meshwright.cli.commands.certs import certs
from meshwright.cli.commands.check import agent_check, check
from meshwright.cli.commands.cni import cni
from meshwright.cli.commands.connectivity import connectivity
from meshwright.cli.commands.crds import crds
from meshwright.cli.commands.diff import diff
from meshwright.cli.commands.explain import explain
from meshwright.cli.commands.explain_injection import explain_injection
from meshwright.cli.commands.inject import inject, uninject
from meshwright.cli.commands.install import install
from meshwright.cli.commands.intercept import intercept
from meshwright.cli.commands.lint import lint
from meshwright.cli.commands.listing import hosts, proxies, replicas, sources
from meshwright.cli.commands.log_level import log_level
from meshwright.cli.commands.migrate import migrate
from meshwright.cli.commands.objects import apply, delete, get
from meshwright.cli.commands.proxy import proxy
from meshwright.cli.commands.schema import schema
from meshwright.cli.commands.serve import serve
from meshwright.cli.commands.stat import stat, top
from meshwright.cli.commands.state import state
from meshwright.cli.commands.tap import tap
from meshwright.cli.commands.unit import unit
from meshwright.cli.commands.version import printed, version
from meshwright.cli.commands.webhook import webhook
from meshwright.cli.process.exit_status import ending_in_words
from meshwright.cli.process.program import Program

app = typer.Typer(
    name="meshwright",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=printed, is_eager=True, help="Print the version of this program."),
    ] = False,
) -> None:
    """Run and inspect a service mesh with Envoy sidecars.

    Meshwright reads services and policies (SMI, Open Service Mesh) from manifests
    or from Kubernetes, and configures Envoy sidecars by xDS v3 over mutual TLS.

    Most commands ask a running server, through the socket in its state directory:
    give --state, or set MESHWRIGHT_STATE. For example, find out why a call is
    denied:

      meshwright explain GET /books --from shop/buyer --to shop/store:80

    Exit status of all commands: 0 for yes or success; 1 for no, a difference or a
    problem; 2 if the command failed. With --json, commands print JSON.
    """


groups = (
    (certs, "certs"),
    (state, "state"),
    (agent, "agent"),
    (migrate, "migrate"),
    (proxy, "proxy"),
    (cni, "cni"),
)
for group, name in groups:
    app.add_typer(group, name=name)
agent.command("check")(agent_check)
for command in (
    apply,
    check,
    connectivity,
    crds,
    delete,
    diff,
    explain,
    explain_injection,
    get,
    install,
    intercept,
    lint,
    schema,
    serve,
    proxies,
    replicas,
    sources,
    stat,
    top,
    tap,
    hosts,
    inject,
    uninject,
    log_level,
    bootstrap,
    bug_report,
    unit,
    version,
    webhook,
):
    app.command()(command)


def main() -> None:
    """Run the command line, and end the process with the command's exit status."""
    with ending_in_words():
        app(prog_name="meshwright")
