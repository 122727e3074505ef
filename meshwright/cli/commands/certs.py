"""`meshwright certs`: issue, revoke and list certificates of proxies."""

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
from meshwright.cli.printing.lines import print_lines, print_remarks
from meshwright.cli.printing.responses import print_json, saying_why
from meshwright.cli.socket import completion as completing
from meshwright.mesh.identity import is_proxy_name

certs = typer.Typer(help="Issue, list, revoke and rotate certificates.", no_args_is_help=True)
certs.add_typer(tokens, name="token")
certs.command("rotate-root")(rotate_root)
certs.command("seal")(seal)
certs.command("unseal")(unseal)


@certs.command("issue-proxy")
def issue_proxy(
    state: State,
    uuid: Annotated[str, typer.Option(help="UUID of the proxy, as in the manifest of its Workload.")],
    service: Annotated[str, typer.Option(help="Primary service of the workload.")],
    namespace: Annotated[str, typer.Option(help="Namespace of the workload.")],
    out: Annotated[Path, typer.Option(help="Directory to write proxy.pem, proxy.key and ca.pem to.")],
    mesh: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_MESH",
            help="Directory of manifests in which to look for the workload, if the server is down.",
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Issue the certificate even if no workload has this name.")
    ] = False,
    validity_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_DAYS,
            help="Lifetime of the certificate in days.",
            show_default=f"the server's setting, {VALIDITY.days}",
        ),
    ] = None,
    claim_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_DAYS,
            help="Days within which the certificate must be used for the first time. After this "
            "time it is refused.",
            show_default="the server's setting, or no deadline",
        ),
    ] = None,
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    r"""Issue the certificate of one proxy, and write it with its private key.

    Use the command for a machine that cannot join with a token. For example:

      meshwright certs issue-proxy --state /var/lib/meshwright \
          --uuid 7b1e9f0c-3d52-4c57-9a3b-0c7f6b1d2e01 --namespace shop \
          --service buyer --out ./buyer

    Exit status: 0 if the certificate is written, 1 if no workload has this UUID,
    service and namespace, 2 for any other failure.
    """
    from meshwright.admin.http.commands import ProxyRequest
    from meshwright.cli.identities.issuing import UNASKED, issue, made_in

    request = ProxyRequest(uuid, service, namespace, validity_days, anyway, claim_days)
    with saying_why(as_json=as_json):
        try:
            issued = issue(state, request, trust_domain, out, mesh=mesh, shared=shared)
        except NegativeAnswer as no:
            raise NegativeAnswer(f"{no}; to issue the certificate anyway, add --anyway") from no
    if issued.made:
        print_remarks(made_in(state))
    if issued.unasked:
        print_remarks(UNASKED)
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
            help="Serial of a certificate, in hexadecimal; or the common name of a proxy, to "
            "revoke all its valid certificates.",
            autocompletion=completing.serials,
        ),
    ],
    reason: Annotated[str, typer.Option(help="Reason to record in the ledger, up to 200 characters.")] = "",
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Also revoke the join token with which the proxy joined.")
    ] = False,
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Revoke a proxy's certificate: end its streams, and refuse it from now on.

    For example, revoke one certificate and the join token behind it:

      meshwright certs revoke 3f9a02 --with-token --reason "machine was stolen"

    The machine cannot join under the same name again with the proof that it used
    before. If its join token is still usable for other names, the command prints
    the token's id.

    Exit status: 1 if the named proxy has no valid certificate.
    """
    from meshwright.cli.identities import revocation as revoking

    _require_no_token(serial)
    if is_proxy_name(serial):
        with saying_why(as_json=as_json):
            certificates = revoking.revoke_all(state, serial, trust_domain, reason, shared=shared)
        query: dict[str, object] = {
            "name": serial,
            "serials": [certificate.serial for certificate in certificates],
        }
    else:
        certificates = [revoking.revoke(state, serial, trust_domain, reason, shared=shared)]
        query = {"name": certificates[0].name, "serial": certificates[0].serial}
    if not as_json:
        # Printed before the tokens are handled: if that fails, the user still knows the revoked certificates.
        print_lines(*(f"revoked {item.serial} of {item.name}" for item in certificates))
    try:
        if with_token:
            query["tokens"] = tokens = revoking.revoke_tokens(
                state, certificates, trust_domain, shared=shared
            )
            if not as_json:
                print_lines(*(f"revoked token {token}" for token in tokens))
        else:
            left = revoking.usable_tokens(state, certificates, trust_domain, shared=shared)
            query["usable_tokens"] = left
            _print_usable(left)
    except IssuingError as error:
        raise CommandFailed(
            f"the certificate is revoked, but its join token could not be checked: {error}; `meshwright "
            "certs token list` shows usable tokens"
        ) from error
    if as_json:
        print_json(query)


@certs.command("list")
def list_certificates(
    state: State, trust_domain: Trust = "cluster.local", shared: Shared = False, as_json: AsJson = False
) -> None:
    """List proxy certificates and service certificates.

    Without a running server the command reads the state directory, and lists
    proxy certificates only.
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
            help="Serial of a certificate; common name or UUID of a proxy; or identity, as "
            "NAMESPACE/SERVICEACCOUNT.",
            autocompletion=completing.certificates,
        ),
    ],
    trust_domain: Trust = "cluster.local",
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Show one certificate, or all certificates of one proxy or identity.

    The output has the owner, the validity, and the reason if a certificate is not
    accepted. For example, show the service certificate of an identity:

      meshwright certs show shop/buyer

    Without a running server, connections and use are unknown.

    Exit status: 1 if there is no such certificate.
    """
    from meshwright.cli.identities.certificates import about
    from meshwright.cli.identities.issuing import listed
    from meshwright.cli.printing.certificates import certificates_lines

    _require_no_token(which)
    result = about(listed(state, trust_domain, shared=shared), which)
    if result is None:
        with saying_why(as_json=as_json):
            raise NegativeAnswer(
                f"{which} is not the serial of a certificate, not a proxy and not an identity: `meshwright "
                "certs list` shows all"
            )
    if as_json:
        print_json(result)
        return
    print_lines(*certificates_lines(result))


@certs.command("rebuild-ledger")
def rebuild_ledger(
    state: State,
    confirm: Annotated[
        list[str] | None,
        typer.Option(metavar="SERIAL", help="Serial of a certificate that is valid. Repeat for more."),
    ] = None,
    confirm_all: Annotated[
        bool, typer.Option("--confirm-all", help="Confirm all listed certificates.")
    ] = False,
    finish: Annotated[
        bool,
        typer.Option(
            "--finish", help="Make the confirmed certificates the new ledger. Stop the server first."
        ),
    ] = False,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Rebuild a lost ledger from the certificates that proxies present.

    Start the server with --rebuild-ledger first. Then list the certificates,
    confirm the valid ones, stop the server, and finish:

      meshwright certs rebuild-ledger
      meshwright certs rebuild-ledger --confirm 3f9a02 --confirm 51c07d
      meshwright certs rebuild-ledger --finish

    Revoked certificates are listed too: confirm only certificates that you know
    to be valid. Proxies without confirmation are refused, and need a new
    certificate.
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
    result = issuing.candidates(state, confirm or (), everybody=confirm_all)
    show(result, candidates_tables, as_json=as_json)


def _print_usable(tokens: Iterable[str]) -> None:
    for item in tokens:
        print_remarks(
            f"meshwright: the proxy joined with token {item}, which other machines can still use, and this "
            f"machine under another name: to revoke the token, run `meshwright certs token revoke {item}`"
        )


def _require_no_token(text: str) -> None:
    """Raise CommandFailed for a join token in place of a serial, without repeating the token's secret."""
    from meshwright.enrolment.tokens import read_token

    try:
        token = read_token(text)
    except ValueError:
        return
    raise CommandFailed(
        f"the argument is a join token, not a serial: `meshwright certs token revoke {token.id}` revokes it"
    )
