"""`meshwright certs`: certificates of proxies, issued, revoked and listed."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.client import ask
from cli.options import AsJson, Shared, State, Trust

certs = typer.Typer(help="Certificates of proxies.", no_args_is_help=True)


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
    from cli.issuing import issue

    issued = issue(
        state, ProxyRequest(uuid, service, namespace, validity_days), trust_domain, out, shared=shared
    )
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
    from cli import issuing

    name, which = issuing.revoke(state, serial, trust_domain, shared=shared)
    print(f"revoked {which} of {name}")


@certs.command("list")
def list_certificates(state: State, as_json: AsJson = False) -> None:
    """List service certificates and proxy certificates."""
    from cli.printing.table import certificates_tables, show

    show(ask(state, "GET", "/debug/certs"), certificates_tables, as_json=as_json)
