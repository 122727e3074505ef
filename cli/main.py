"""The command `meshwright`: names its commands.

What is heavy to import is imported by the command that needs it, so that help comes at once.
"""

from typing import Annotated

import typer

from cli.commands.agent import agent
from cli.commands.bootstrap import bootstrap
from cli.commands.bug_report import bug_report
from cli.commands.certs import certs
from cli.commands.check import agent_check, check
from cli.commands.cni import cni
from cli.commands.connectivity import connectivity
from cli.commands.crds import crds
from cli.commands.diff import diff
from cli.commands.explain import explain
from cli.commands.explain_injection import explain_injection
from cli.commands.inject import inject, uninject
from cli.commands.install import install
from cli.commands.intercept import intercept
from cli.commands.lint import lint
from cli.commands.listing import hosts, proxies, sources
from cli.commands.log_level import log_level
from cli.commands.migrate import migrate
from cli.commands.proxy import proxy
from cli.commands.schema import schema
from cli.commands.serve import serve
from cli.commands.stat import stat, top
from cli.commands.tap import tap
from cli.commands.unit import unit
from cli.commands.version import printed, version
from cli.commands.webhook import webhook
from cli.ending import ending_in_words
from cli.program import Program

app = typer.Typer(
    name="meshwright",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=printed, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A service-mesh control plane for Envoy: SMI policies in, xDS v3 out, over mTLS.

    Every command ends with 0 for a yes, 1 for a no, a difference or a problem, and 2 where it could not be
    found out or done; what it prints is JSON with --json.
    """


groups = ((certs, "certs"), (agent, "agent"), (migrate, "migrate"), (proxy, "proxy"), (cni, "cni"))
for group, name in groups:
    app.add_typer(group, name=name)
agent.command("check")(agent_check)
for command in (
    check,
    connectivity,
    crds,
    diff,
    explain,
    explain_injection,
    install,
    intercept,
    lint,
    schema,
    serve,
    proxies,
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
    """Run the command line."""
    with ending_in_words():
        app(prog_name="meshwright")
