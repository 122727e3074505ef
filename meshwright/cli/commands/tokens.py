"""`meshwright certs token`: what lets machines join."""

from pathlib import Path
from typing import Annotated

import typer

from certs.lifetimes import MOST_DAYS
from meshwright.cli.durations import duration
from meshwright.cli.errors import NegativeAnswer
from meshwright.cli.options import AsJson, Shared, State, Trust
from meshwright.cli.printing.lines import print_lines, say
from meshwright.cli.printing.responses import print_json, saying_why

tokens = typer.Typer(help="Join tokens: what lets a machine join.", no_args_is_help=True)


@tokens.command("create")
def create(
    state: State,
    service: Annotated[str, typer.Option(help="The service whose proxies join.")],
    namespace: Annotated[str, typer.Option(help="Its namespace.")],
    uuid: Annotated[str | None, typer.Option(help="For this proxy alone, as its Workload has it.")] = None,
    uses: Annotated[int, typer.Option(min=1, help="So many machines may join by it.")] = 1,
    valid_for: Annotated[str, typer.Option(metavar="DURATION", help="Such as 30m, 24h or 7d.")] = "24h",
    certificate_days: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_DAYS, help="Validity of certificates. [as the server is set]"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A file (0600) for the token; without, it is printed.")
    ] = None,
    mesh: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_MESH", help="Manifests that say who has the name, if no server runs."
        ),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Although no workload has the name.")] = False,
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Make a join token. It is shown once: what is kept of it does not tell its secret.

    Status: 1 where it is for one proxy that no workload has; 2 for whatever else keeps it from being made.
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
            raise NegativeAnswer(f"{no}; --anyway makes it all the same") from no
    token = done.token
    if token["ca_made"]:
        say(made_in(state))
    if done.unasked:
        say(UNASKED)
    if as_json:
        print_json(token)
        return
    print_lines(f"written to {out}" if out is not None else str(token["token"]))
    times = "once" if uses == 1 else f"{uses} times"
    say(f"token {token['id']} lets in {times}, until {token['expires_at']}")


@tokens.command("list")
def list_tokens(
    state: State, trust_domain: Trust = "cluster.local", shared: Shared = False, as_json: AsJson = False
) -> None:
    """List join tokens: for whom they are, how often they were used, until when they can be."""
    from meshwright.cli.identities.tokens import listed
    from meshwright.cli.printing.table import show, tokens_tables

    show(listed(state, trust_domain, shared=shared), tokens_tables, as_json=as_json)


@tokens.command("revoke")
def revoke(
    state: State,
    token: Annotated[str, typer.Argument(help="Its id, which is its first part; or all of it.")],
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Have a join token let in nobody any more; who has joined by it stays."""
    from meshwright.cli.identities import tokens as asking

    identifier = token.strip().partition(".")[0]  # a secret that was pasted goes nowhere
    found = asking.revoke(state, identifier, trust_domain, shared=shared)
    if as_json:
        print_json(found)
        return
    print_lines(f"revoked {found['id']}, which was used {found['used']} times of {found['uses']}")
