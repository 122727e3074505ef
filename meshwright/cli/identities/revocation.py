"""Revocation of proxy certificates for the command line, and of the join tokens behind them."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from meshwright.cli.errors import IssuingError, NegativeAnswer
from meshwright.cli.identities import tokens
from meshwright.cli.identities.issuing import by_either, listed, opened_here, post_to_server
from meshwright.cli.printing.responses import required_records
from meshwright.controller.errors import MissingAuthority
from meshwright.enrolment.tokens import token_of


@dataclass(frozen=True, slots=True)
class RevokedCertificate:
    """A revoked proxy certificate. `joined_by` is the join proof with which the holder joined, or empty."""

    name: str
    serial: str
    joined_by: str = ""


def revoke(
    state: Path, serial: str, trust_domain: str, why: str = "", *, shared: bool = False
) -> RevokedCertificate:
    """Revoke a proxy certificate, and record the reason `why`. Raises IssuingError."""

    def by_server() -> RevokedCertificate:
        answer = post_to_server(state, "/certs/revoke", {"serial": serial, "reason": why})
        return RevokedCertificate(answer["name"], answer["serial"], answer.get("joined_by") or "")

    def here() -> RevokedCertificate:
        with opened_here(state, trust_domain, shared=shared, new=False) as issuing:
            entry = issuing.revoke(serial, why)
        return RevokedCertificate(entry.common_name, entry.serial, entry.joined_by)

    try:
        return by_either(by_server, here)
    except MissingAuthority as error:
        raise IssuingError(f"cannot revoke serial {serial}: {error}") from error


def revoke_all(
    state: Path, proxy: str, trust_domain: str, why: str = "", *, shared: bool = False
) -> list[RevokedCertificate]:
    """Revoke all valid certificates of a proxy.

    Raises NegativeAnswer if there is none, and IssuingError after all have been tried: one failed write must
    not keep the others valid.
    """
    revoked: list[RevokedCertificate] = []
    failed: IssuingError | None = None
    # Repeated until the list is empty, because the proxy may renew its certificate meanwhile.
    while failed is None and (result := _in_force(listed(state, trust_domain, shared=shared), proxy)):
        for serial in result:
            try:
                revoked.append(revoke(state, serial, trust_domain, why, shared=shared))
            except IssuingError as error:
                failed = error
    if failed is not None:
        raise failed
    if not revoked:
        raise NegativeAnswer(f"proxy {proxy} has no valid certificate")
    return revoked


def revoke_tokens(
    state: Path, revoked: Iterable[RevokedCertificate], trust_domain: str, *, shared: bool = False
) -> list[str]:
    """Revoke the tokens with which the holders joined; return the tokens' ids. Raises IssuingError."""
    result = sorted(_tokens(revoked))
    for item in result:
        tokens.revoke(state, item, trust_domain, shared=shared)
    return result


def usable_tokens(
    state: Path, revoked: Iterable[RevokedCertificate], trust_domain: str, *, shared: bool = False
) -> list[str]:
    """Return the ids of the revoked proxies' join tokens with further uses. Raises IssuingError."""
    if not (result := _tokens(revoked)):
        return []
    everything = tokens.listed(state, trust_domain, shared=shared)
    known = required_records(everything, "join_tokens")
    return sorted(str(item["id"]) for item in known if item["id"] in result and item["state"] == "usable")


def _tokens(revoked: Iterable[RevokedCertificate]) -> set[str]:
    return {token for certificate in revoked if (token := token_of(certificate.joined_by)) is not None}


def _in_force(everything: object, proxy: str) -> list[str]:
    entries = required_records(everything, "proxy_certificates")
    return [str(entry["serial"]) for entry in entries if entry["cn"] == proxy and entry.get("in_force")]
