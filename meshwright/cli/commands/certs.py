"""`meshwright certs`: certificates of proxies, issued, revoked and listed."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from certs.lifetimes import MOST_DAYS, VALIDITY
from meshwright.cli.commands.rotate_root import rotate_root
from meshwright.cli.commands.sealing import seal, unseal
from meshwright.cli.commands.tokens import tokens
from meshwright.cli.errors import CommandFailed, IssuingError, NegativeAnswer
from meshwright.cli.options import AsJson, Shared, State, Trust
from meshwright.cli.printing.lines import print_lines, say
from meshwright.cli.printing.responses import print_json, saying_why
from meshwright.cli.socket import completion as completing
from meshwright.mesh.identity import is_proxy_name

certs = typer.Typer(help="Certificates of proxies.", no_args_is_help=True)
certs.add_typer(tokens, name="token")
certs.command("rotate-root")(rotate_root)
certs.command("seal")(seal)
certs.command("unseal")(unseal)


@certs.command("issue-proxy")
def issue_proxy(
    state: State,
    uuid: Annotated[str, typer.Option(help="The proxy's UUID, as its Workload has it.")],
    service: Annotated[str, typer.Option(help="The workload's primary service.")],
    namespace: Annotated[str, typer.Option(help="The workload's namespace.")],
    out: Annotated[Path, typer.Option(help="Directory for proxy.pem, proxy.key and ca.pem.")],
    mesh: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_MESH", help="Manifests that say who has the name, if no server runs."
        ),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Although no workload has the name.")] = False,
    validity_days: Annotated[
        int | None, typer.Option(min=1, max=MOST_DAYS, help=f"[{VALIDITY.days}]")
    ] = None,
    claim_days: Annotated[
        int | None, typer.Option(min=1, max=MOST_DAYS, help="Refused unless used for the first time by then.")
    ] = None,
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Issue the certificate with which one sidecar dials in, and write it with its key.

    Status: 1 where no workload has the name, by the server, or without one by --mesh; 2 for whatever else
    keeps it from being issued.
    """
    from meshwright.admin.http.commands import ProxyRequest
    from meshwright.cli.identities.issuing import UNASKED, issue, made_in

    request = ProxyRequest(uuid, service, namespace, validity_days, anyway, claim_days)
    with saying_why(as_json=as_json):
        try:
            issued = issue(state, request, trust_domain, out, mesh=mesh, shared=shared)
        except NegativeAnswer as no:
            raise NegativeAnswer(f"{no}; --anyway issues it all the same") from no
    if issued.made:
        say(made_in(state))
    if issued.unasked:
        say(UNASKED)
    if as_json:
        named = {"name": issued.name, "serial": issued.serial, "not_after": issued.not_after}
        print_json(named | {"directory": str(out), "ca_made": issued.made})
        return
    print_lines(
        issued.name, f"serial {issued.serial}", f"valid until {issued.not_after}", f"written to {out}"
    )


@certs.command("revoke")
def revoke(
    state: State,
    serial: Annotated[
        str,
        typer.Argument(
            help="Serial, hexadecimal; or a proxy's common name: all of its that are in force.",
            autocompletion=completing.serials,
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why: the ledger keeps it, in 200 characters.")] = "",
    with_token: Annotated[
        bool, typer.Option("--with-token", help="The join token by which it came as well.")
    ] = False,
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Revoke a proxy's certificate: its streams end, and it is refused from now on.

    By what it joined it comes by its name no more. A token that lets in others still is named.
    Status: 1 where the proxy has none in force.
    """
    from meshwright.cli.identities import revocation as revoking

    _require_no_token(serial)
    if is_proxy_name(serial):
        with saying_why(as_json=as_json):
            found = revoking.revoke_all(state, serial, trust_domain, reason, shared=shared)
        said: dict[str, object] = {"name": serial, "serials": [each.serial for each in found]}
    else:
        found = [revoking.revoke(state, serial, trust_domain, reason, shared=shared)]
        said = {"name": found[0].name, "serial": found[0].serial}
    if not as_json:
        print_lines(*(f"revoked {each.serial} of {each.name}" for each in found))
    try:
        if with_token:
            said["tokens"] = tokens = revoking.revoke_tokens(state, found, trust_domain, shared=shared)
            if not as_json:
                print_lines(*(f"revoked token {each}" for each in tokens))
        else:
            left = revoking.usable_tokens(state, found, trust_domain, shared=shared)
            said["usable_tokens"] = left
            _say_usable(left)
    except IssuingError as error:
        raise CommandFailed(f"the certificate is revoked; of the token it came by: {error}") from error
    if as_json:
        print_json(said)


@certs.command("list")
def list_certificates(
    state: State, trust_domain: Trust = "cluster.local", shared: Shared = False, as_json: AsJson = False
) -> None:
    """List service certificates and proxy certificates.

    Where no server runs, those of proxies, from the state directory; service certificates live in a server.
    """
    from meshwright.cli.identities.issuing import listed
    from meshwright.cli.printing.certificates import certificates_tables
    from meshwright.cli.printing.table import show

    show(listed(state, trust_domain, shared=shared), certificates_tables, as_json=as_json)


@certs.command("show")
def show_certificate(
    state: State,
    which: Annotated[
        str,
        typer.Argument(
            help="Serial; a proxy's common name or UUID; or NAMESPACE/SERVICEACCOUNT.",
            autocompletion=completing.certificates,
        ),
    ],
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Show everything of one certificate, or of one proxy's: whose, since when, until when, and why not.

    Status: 1 where there is none. Without a server nobody knows who takes part, nor what is shown to others.
    """
    from meshwright.cli.identities.certificates import about
    from meshwright.cli.identities.issuing import listed
    from meshwright.cli.printing.certificates import certificates_lines

    _require_no_token(which)
    found = about(listed(state, trust_domain, shared=shared), which)
    if found is None:
        with saying_why(as_json=as_json):
            raise NegativeAnswer(
                f"there is no certificate with the serial {which}, no proxy and no identity {which}"
            )
    if as_json:
        print_json(found)
        return
    print_lines(*certificates_lines(found))


@certs.command("rebuild-ledger")
def rebuild_ledger(
    state: State,
    confirm: Annotated[
        list[str] | None, typer.Option(metavar="SERIAL", help="It is in force; may be said several times.")
    ] = None,
    confirm_all: Annotated[bool, typer.Option("--confirm-all", help="All that are listed are.")] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="What is confirmed is the ledger from now on; no server may run.")
    ] = False,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Have a lost ledger back from what proxies show to a server that was started with --rebuild-ledger.

    Without options it lists their certificates. One that was revoked is shown like any other: confirm none
    that you do not know to be in force. Who is not confirmed is refused, and needs a new certificate.
    """
    from meshwright.cli.identities import issuing
    from meshwright.cli.printing.certificates import candidates_tables
    from meshwright.cli.printing.table import show

    if finish:
        count = issuing.finish_rebuilding(state, shared=shared)
        if as_json:
            print_json({"certificates": count})
        else:
            print_lines(f"the ledger has {count} certificates; start the server without --rebuild-ledger")
        return
    found = issuing.candidates(state, confirm or (), everybody=confirm_all)
    show(found, candidates_tables, as_json=as_json)


def _say_usable(tokens: Iterable[str]) -> None:
    for each in tokens:
        say(
            f"meshwright: it joined by token {each}, which lets in others still, and this machine under "
            f"another name: `certs token revoke {each}` ends that (or --with-token at once)"
        )


def _require_no_token(text: str) -> None:
    """Raise CommandFailed for a join token in the place of a serial: nothing may say it again."""
    from meshwright.enrolment.tokens import read_token

    try:
        token = read_token(text)
    except ValueError:
        return
    raise CommandFailed(f"that is a join token, and no serial: `certs token revoke {token.id}` revokes it")
