"""Join tokens for the command line: by the running server, or in the state directory itself."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from admin.http.commands import NobodysName
from admin.http.tokens import asked, require_expected, token_document, tokens_document, user_name
from cli.client import ask
from cli.errors import AnsweredNo, IssuingError
from cli.issuing import asked_of_server, by_either, now, opened_here
from cli.offline.mesh import read
from controller.errors import NothingIssued
from controller.tokens import JoinTokens
from enrolment.tokens import TokenRequest


@dataclass(frozen=True, slots=True)
class Made:
    """A token as the server says it, with its text as `token`, and whether a CA was made (`ca_made`).

    `unasked`: it is for one proxy, and nobody could say whether a workload has that name.
    """

    token: Mapping[str, object] = field(repr=False)
    unasked: bool = False


def create(
    state: Path,
    wanted: TokenRequest,
    trust_domain: str,
    *,
    mesh: Path | None = None,
    anyway: bool = False,
    shared: bool = False,
) -> Made:
    """Have a token made, without a server in the state directory itself. Raises IssuingError.

    Raises AnsweredNo where it is for one proxy, and no workload has that, as the server knows, or the
    directory `mesh`.
    """

    def without_server() -> Made:
        if mesh is not None:
            require_expected(read(mesh).view, wanted, anyway=anyway)
        with opened_here(state, trust_domain, shared=shared, new=True) as issuing:
            tokens = JoinTokens(state, issuing.trust_bundle, now)
            token, record = tokens.create(wanted, user_name(os.geteuid()))
            made = {**token_document(record, record.made_at), "ca_made": issuing.made}
        unasked = wanted.uuid is not None and mesh is None and not anyway
        return Made({"token": token.text(), **made}, unasked)

    def by_server() -> Made:
        return Made({**asked_of_server(state, "/certs/tokens", body), "ca_made": False})

    body = {**asked(wanted), "anyway": anyway}
    try:
        return by_either(by_server, without_server)
    except NobodysName as error:
        raise AnsweredNo(error) from error


def listed(state: Path, trust_domain: str, *, shared: bool = False) -> object:
    """Return all tokens, without their secrets, which nobody has; raise IssuingError."""

    def without_server() -> object:
        with opened_here(state, trust_domain, shared=shared, new=False) as issuing:
            return tokens_document(JoinTokens(state, issuing.trust_bundle, now).tokens(), now())

    try:
        return by_either(lambda: ask(state, "GET", "/certs/tokens"), without_server)
    except NothingIssued as error:
        raise IssuingError(str(error)) from error


def revoke(state: Path, token: str, trust_domain: str, *, shared: bool = False) -> Mapping[str, object]:
    """Have a token entitle nobody any more; raise IssuingError."""

    def without_server() -> Mapping[str, object]:
        with opened_here(state, trust_domain, shared=shared, new=False) as issuing:
            tokens = JoinTokens(state, issuing.trust_bundle, now)
            return token_document(tokens.revoke(token), now())

    try:
        return by_either(
            lambda: asked_of_server(state, "/certs/tokens/revoke", {"token": token}), without_server
        )
    except NothingIssued as error:
        raise IssuingError(f"there is no join token {token}: {error}") from error
