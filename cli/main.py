"""The command `meshwright`: names its commands.

What is heavy to import is imported by the command that needs it, so that help comes at once.
"""

import typer

from cli.commands.agent import agent
from cli.commands.bootstrap import bootstrap
from cli.commands.certs import certs
from cli.commands.diff import diff
from cli.commands.explain import explain
from cli.commands.intercept import intercept
from cli.commands.lint import lint
from cli.commands.listing import hosts, proxies, sources
from cli.commands.proxy import proxy
from cli.commands.serve import serve
from cli.commands.version import version
from cli.program import Program

app = typer.Typer(
    name="meshwright",
    cls=Program,
    help="A service-mesh control plane for Envoy: SMI policies in, xDS v3 out, over mTLS.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for group, name in ((certs, "certs"), (agent, "agent"), (proxy, "proxy")):
    app.add_typer(group, name=name)
for command in (diff, explain, intercept, lint, serve, proxies, sources, hosts, bootstrap, version):
    app.command()(command)


def main() -> None:
    """Run the command line."""
    app()
