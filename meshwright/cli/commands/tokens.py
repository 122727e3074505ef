"""`meshwright certs token`: join tokens, with which machines join the mesh."""

from pathlib import Path
from typing import Annotated

import typer

from certs.lifetimes import MOST_DAYS
from meshwright.cli.durations import duration
from meshwright.cli.errors import NegativeAnswer
from meshwright.cli.options import AsJson, Shared, State, Trust
from meshwright.cli.printing.lines import print_lines, print_remarks
from meshwright.cli.printing.responses import print_json, saying_why

tokens = typer.Typer(
    help="Create, list and revoke join tokens, with which machines join the mesh.", no_args_is_help=True
)


@tokens.command("create")
def create(
    state: State,
    service: Annotated[str, typer.Option(help="Primary service of the workloads that may join.")],
    namespace: Annotated[str, typer.Option(help="Namespace of the service.")],
    uuid: Annotated[
        str | None,
        typer.Option(
            help="UUID of the only proxy that may join, as in the manifest of its Workload.",
            show_default="any proxy of the service",
        ),
    ] = None,
    uses: Annotated[int, typer.Option(min=1, help="Number of machines that may join with the token.")] = 1,
    valid_for: Annotated[
        str, typer.Option(metavar="DURATION", help="Lifetime of the token, for example 30m, 24h or 7d.")
    ] = "24h",
    certificate_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_DAYS,
            help="Lifetime in days of the certificates that joining machines get.",
            show_default="the server's setting",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the token, written with mode 0600.", show_default="print the token"),
    ] = None,
    mesh: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_MESH",
            help="Directory of manifests in which to look for the workload, if the server is down.",
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Create the token even if no workload has this name.")
    ] = False,
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Create a join token, with which machines join the mesh.

    The token is shown only once, because the server does not store its secret.
    For example, let three machines join within a day:

      meshwright certs token create --namespace shop --service buyer --uses 3

    Exit status: 0 if the token is created; 1 if the token is for one proxy
    (--uuid) that no workload has; 2 for any other failure.
    """
    from meshwright.cli.identities.issuing import UNASKED, made_in
    from meshwright.cli.identities.tokens import create as made
    from meshwright.enrolment.tokens import TokenRequest

    wanted = TokenRequest(
        service, namespace, uuid, uses, duration("--valid-for", valid_for), certificate_days
    )
    with saying_why(as_json=as_json):
        try:
            done = made(state, wanted, trust_domain, out, mesh=mesh, anyway=anyway, shared=shared)
        except NegativeAnswer as no:
            raise NegativeAnswer(f"{no}; to create the token anyway, add --anyway") from no
    token = done.token
    if token["ca_made"]:
        print_remarks(made_in(state))
    if done.unasked:
        print_remarks(UNASKED)
    if as_json:
        print_json(token)
        return
    print_lines(f"written to {out}" if out is not None else str(token["token"]))
    times = "once" if uses == 1 else f"{uses} times"
    print_remarks(f"token {token['id']} can be used {times}, until {token['expires_at']}")


@tokens.command("list")
def list_tokens(
    state: State, trust_domain: Trust = "cluster.local", shared: Shared = False, as_json: AsJson = False
) -> None:
    """List join tokens: service, use, and expiry."""
    from meshwright.cli.identities.tokens import listed
    from meshwright.cli.printing.table import show, tokens_tables

    show(listed(state, trust_domain, shared=shared), tokens_tables, as_json=as_json)


@tokens.command("revoke")
def revoke(
    state: State,
    token: Annotated[
        str, typer.Argument(help="Id of the token, which is its first part; or the whole token.")
    ],
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Revoke a join token, so that machines cannot join with it any more.

    Machines that have joined already stay in the mesh: to remove one, use
    `meshwright certs revoke`.
    """
    from meshwright.cli.identities import tokens as asking

    identifier = token.strip().partition(".")[0]  # drops the secret of a pasted token, so that no log gets it
    result = asking.revoke(state, identifier, trust_domain, shared=shared)
    if as_json:
        print_json(result)
        return
    print_lines(f"revoked token {result['id']}, used {result['used']} of {result['uses']} times")
