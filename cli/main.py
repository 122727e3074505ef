"""The command `meshwright`: reads arguments, prints answers; a failure is one sentence and a status.

What is heavy to import is imported by the command that needs it, so that help comes at once.
"""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from cli.client import NotRunning, Refused, ask
from cli.commands.agent import agent
from cli.commands.diff import diff
from cli.commands.explain import explain
from cli.commands.intercept import intercept
from cli.commands.lint import lint
from cli.commands.proxy import proxy

app = typer.Typer(
    name="meshwright",
    help="A service-mesh control plane for Envoy: SMI policies in, xDS v3 out, over mTLS.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
certs = typer.Typer(help="Certificates of proxies.", no_args_is_help=True)
app.add_typer(certs, name="certs")
app.command()(diff)
app.command()(explain)
app.add_typer(agent, name="agent")
app.add_typer(proxy, name="proxy")
app.command()(intercept)
app.command()(lint)

State = Annotated[
    Path, typer.Option(envvar="MESHWRIGHT_STATE", help="State directory of the server.", show_default=False)
]
Trust = Annotated[
    str, typer.Option(envvar="MESHWRIGHT_TRUST_DOMAIN", help="Of the state directory, if no server runs.")
]
Shared = Annotated[
    bool,
    typer.Option(
        "--shared-state", envvar="MESHWRIGHT_SHARED_STATE", help="Although others can read the directory."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def _fail(message: object, status: int = 1) -> NoReturn:
    print(f"meshwright: {message}", file=sys.stderr)
    raise typer.Exit(status)


def _ask(state: Path, method: str, path: str, query: dict[str, str] | None = None) -> object:
    try:
        return ask(state, method, path, query)
    except (NotRunning, Refused) as error:
        _fail(error)


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


@app.command()
def serve(
    mesh: Annotated[Path | None, typer.Option(help="Directory of manifests, watched.")] = None,
    state: Annotated[Path | None, typer.Option(help="Directory for CA, keys, ledger, socket.")] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings.")] = None,
    ads_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where proxies dial in. [0.0.0.0:15128]")
    ] = None,
    http_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Health and metrics. [0.0.0.0:9091]")
    ] = None,
    debug_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Debug pages. [127.0.0.1:9092]")
    ] = None,
    trust_domain: Annotated[str | None, typer.Option(help="SPIFFE trust domain. [cluster.local]")] = None,
    cluster_domain: Annotated[
        str | None, typer.Option(help="DNS domain of services. [cluster.local]")
    ] = None,
    virtual_addresses: Annotated[
        str | None, typer.Option(metavar="CIDR", help="For services without cluster IP. [240.0.0.0/8]")
    ] = None,
    begin_anew: Annotated[
        str | None, typer.Option(metavar="SERIAL", help="Without the CA or ledger that is lost.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error. [info]")] = None,
    log_format: Annotated[str | None, typer.Option(help="auto, json or console. [auto]")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting, such as quiet_seconds=0.2."),
    ] = None,
) -> None:
    """Run the control plane until SIGTERM or SIGINT.

    Every setting can also be given as MESHWRIGHT_<NAME> in the environment, or in the config file.
    """
    # Before gRPC is imported: its core has a raw line for whatever a stranger does in a handshake.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from cli.commands.serve import run

    flags: dict[str, object] = {
        "mesh": mesh,
        "state": state,
        "config": config,
        "ads_address": ads_address,
        "http_address": http_address,
        "debug_address": debug_address,
        "trust_domain": trust_domain,
        "cluster_domain": cluster_domain,
        "virtual_addresses": virtual_addresses,
        "begin_anew": begin_anew,
        "log_level": log_level,
        "log_format": log_format,
    }
    for text in setting or ():
        name, equals, value = text.partition("=")
        if not equals:
            _fail(f"--set {text!r} must be NAME=VALUE", 2)
        flags[name.strip().replace("-", "_")] = value
    if (sentence := run(flags)) is not None:
        _fail(sentence)


@certs.command("issue-proxy")
def issue_proxy(
    state: State,
    uuid: Annotated[str, typer.Option(help="The proxy's UUID, as its Workload has it.")],
    service: Annotated[str, typer.Option(help="The workload's primary service.")],
    namespace: Annotated[str, typer.Option(help="The workload's namespace.")],
    out: Annotated[Path, typer.Option(help="Directory for proxy.pem, proxy.key and ca.pem.")],
    validity_days: Annotated[int | None, typer.Option(min=1, max=3650, help="[365]")] = None,
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
) -> None:
    """Issue the certificate with which one sidecar dials in, and write it with its key."""
    from admin.http.commands import ProxyRequest
    from cli.commands.certs import IssuingError, issue

    try:
        issued = issue(
            state, ProxyRequest(uuid, service, namespace, validity_days), trust_domain, out, shared=shared
        )
    except IssuingError as error:
        _fail(error)
    if issued.made:
        print(f"meshwright: a new CA was made in {state}: it was no state directory before", file=sys.stderr)
    print(f"{issued.name}\nserial {issued.serial}\nvalid until {issued.not_after}\nwritten to {out}")


@certs.command("revoke")
def revoke(
    state: State,
    serial: Annotated[str, typer.Argument(help="Serial, hexadecimal.")],
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
) -> None:
    """Revoke a proxy's certificate: its streams end, and it is refused from now on."""
    from cli.commands.certs import IssuingError
    from cli.commands.certs import revoke as revoked

    try:
        name, which = revoked(state, serial, trust_domain, shared=shared)
    except IssuingError as error:
        _fail(error)
    print(f"revoked {which} of {name}")


@certs.command("list")
def list_certificates(state: State, as_json: AsJson = False) -> None:
    """List service certificates and proxy certificates."""
    found = _ask(state, "GET", "/debug/certs")
    if as_json or not isinstance(found, dict):
        _print_json(found)
        return
    from cli.printing.table import certificates_tables, console

    for table in certificates_tables(found):
        console().print(table)


@app.command()
def proxies(state: State, as_json: AsJson = False) -> None:
    """Show every proxy: connected, expected or disconnected, in step, or why it is behind."""
    found = _ask(state, "GET", "/debug/proxy")
    if as_json or not isinstance(found, dict):
        _print_json(found)
        return
    from cli.printing.table import console, proxies_table

    console().print(proxies_table(found.get("proxies", ())))


@app.command()
def sources(state: State, as_json: AsJson = False) -> None:
    """Show every source: how fresh it is, what it holds, and what is held back."""
    found = _ask(state, "GET", "/debug/sources")
    if as_json or not isinstance(found, dict):
        _print_json(found)
        return
    from cli.printing.table import console, sources_table

    console().print(sources_table(found))


@app.command()
def hosts(
    state: State,
    namespace: Annotated[str, typer.Option(help="The namespace whose short names are wanted.")],
) -> None:
    """Print the lines of a hosts file that make the mesh's services resolve."""
    found = _ask(state, "GET", "/hosts", {"namespace": namespace})
    lines = found.get("hosts", ()) if isinstance(found, dict) else ()
    for line in lines:
        print(f"{line['address']} {' '.join(line['names'])}")


@app.command()
def bootstrap(
    credentials: Annotated[Path, typer.Option(help="Directory with proxy.pem, proxy.key and ca.pem.")],
    ads: Annotated[str, typer.Option(metavar="HOST:PORT", help="The control plane.")],
    admin: Annotated[str, typer.Option(metavar="HOST:PORT", help="Envoy's admin.")] = "127.0.0.1:15000",
    protocol: Annotated[str, typer.Option(help="delta or sotw.")] = "delta",
    output: Annotated[Path | None, typer.Option(help="File to write; standard output without.")] = None,
) -> None:
    """Write an Envoy bootstrap for one sidecar; its name is read from its certificate."""
    from cli.commands.bootstrap import BootstrapError, text

    try:
        made = text(credentials, ads, admin, protocol)
    except BootstrapError as error:
        _fail(error)
    if output is None:
        print(made, end="")
        return
    from cli.printing.files import write

    try:
        write(output, made.encode(), 0o644)
    except OSError as error:
        _fail(f"cannot write {output}: {error.strerror}")


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    print(installed("meshwright"))


def main() -> None:
    """Run the command line."""
    app()
