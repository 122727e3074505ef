"""Join tokens for the command line: by the running server, or in the state directory itself."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from meshwright.admin.http.audit import user_name
from meshwright.admin.http.commands import UnknownHolder
from meshwright.admin.http.tokens import request_document, require_expected, token_document, tokens_document
from meshwright.cli.errors import IssuingError, NegativeAnswer
from meshwright.cli.identities.issuing import by_either, now, opened_here, post_to_server
from meshwright.cli.offline.mesh import read
from meshwright.cli.printing.files import new_file
from meshwright.cli.socket.client import ask
from meshwright.controller.errors import MissingAuthority
from meshwright.controller.identity.join_tokens import JoinTokens
from meshwright.enrolment.tokens import TokenRequest


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token in the form of the server's answer; the key `ca_made` says whether a CA was created.

    The secret is in `token`, or in the file `written_to`.

    `unasked`: the token is for one proxy, and the name was not checked against the workloads of a mesh.
    """

    token: Mapping[str, object] = field(repr=False)
    unasked: bool = False


def create(
    state: Path,
    wanted: TokenRequest,
    trust_domain: str,
    out: Path | None = None,
    *,
    mesh: Path | None = None,
    anyway: bool = False,
    shared: bool = False,
) -> IssuedToken:
    """Create a token, by the server or in the state directory itself. Raises IssuingError.

    The token is written to the new file `out`, if given. Raises NegativeAnswer for a token for one proxy, if
    the server's mesh, or the mesh in the directory `mesh`, has no such workload.
    """

    def without_server() -> IssuedToken:
        if mesh is not None:
            require_expected(read(mesh).view, wanted, anyway=anyway)
        with opened_here(state, trust_domain, shared=shared, new=True) as issuing, _opened(out) as file:
            tokens = JoinTokens.in_directory(state, issuing.trust_bundle, now)
            token, record = tokens.create(wanted, user_name(os.geteuid()))
            made = {**token_document(record, record.made_at), "ca_made": issuing.made}
            fields = _put(out, file, token.text())
        unasked = wanted.uuid is not None and mesh is None and not anyway
        return IssuedToken({**fields, **made}, unasked)

    def by_server() -> IssuedToken:
        with _opened(out) as file:
            made = dict(post_to_server(state, "/certs/tokens", body))
            details = _put(out, file, made.pop("token"))
        return IssuedToken({**details, **made, "ca_made": False})

    body = {**request_document(wanted), "anyway": anyway}
    try:
        return by_either(by_server, without_server)
    except UnknownHolder as error:
        raise NegativeAnswer(error) from error


@contextmanager
def _opened(out: Path | None) -> Iterator[IO[str] | None]:
    """Yield the new file for a token, or None if the token is printed; raise IssuingError.

    The file is created before the token, because a token can be shown only once. If creating the token fails,
    the file is deleted.
    """
    if out is None:
        yield None
        return
    with ExitStack() as opened:
        try:
            file = opened.enter_context(new_file(out))
        except OSError as error:
            raise IssuingError(
                f"cannot write {out}: {error.strerror}; the token was not created: give a new file with --out"
            ) from error
        yield file


def _put(out: Path | None, file: IO[str] | None, token: str) -> dict[str, str]:
    """Write a token to its file, if there is one; return the field `token` or `written_to`.

    Raises IssuingError.
    """
    if file is None:
        return {"token": token}
    try:
        file.write(f"{token}\n")
        file.flush()
    except OSError as error:
        # The error has only the token's id, because errors end in logs.
        identifier = token.partition(".")[0]
        raise IssuingError(
            f"cannot write {out}: {error.strerror}; the secret of token {identifier} is lost: revoke the "
            f"token with `meshwright certs token revoke {identifier}`"
        ) from error
    return {"written_to": str(out)}


def listed(state: Path, trust_domain: str, *, shared: bool = False) -> object:
    """Return all tokens without their secrets, of which only hashes are kept; raise IssuingError."""

    def without_server() -> object:
        with opened_here(state, trust_domain, shared=shared, new=False) as issuing:
            return tokens_document(JoinTokens.in_directory(state, issuing.trust_bundle, now).tokens(), now())

    try:
        return by_either(lambda: ask(state, "GET", "/certs/tokens"), without_server)
    except MissingAuthority as error:
        raise IssuingError(str(error)) from error


def revoke(state: Path, token: str, trust_domain: str, *, shared: bool = False) -> Mapping[str, object]:
    """Revoke a token, so that machines can no longer join with it; raise IssuingError."""

    def without_server() -> Mapping[str, object]:
        with opened_here(state, trust_domain, shared=shared, new=False) as issuing:
            tokens = JoinTokens.in_directory(state, issuing.trust_bundle, now)
            return token_document(tokens.revoke(token), now())

    try:
        return by_either(
            lambda: post_to_server(state, "/certs/tokens/revoke", {"token": token}), without_server
        )
    except MissingAuthority as error:
        raise IssuingError(f"cannot revoke join token {token}: {error}") from error
