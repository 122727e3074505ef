"""Parsing of Vault's answers; unexpected content raises IssuerError with one sentence."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeGuard

from cryptography import x509

from certs.errors import IssuerError
from certs.issuers.vault.http import Answer
from certs.keys.bundle import TrustBundle
from meshwright.tls.pem import as_pem, certificates_in

_MOST_SECONDS: Final = 1000 * 365 * 86400


@dataclass(frozen=True, slots=True)
class Lease:
    """A token of Vault, and the end of its validity; None for a token without an end."""

    token: str = field(repr=False)
    begins: datetime
    ends: datetime | None
    renewable: bool

    def is_good(self, now: datetime) -> bool:
        """Return whether the token can be used."""
        return self.ends is None or self.begins <= now < self.ends

    def is_due(self, now: datetime) -> bool:
        """Return whether the token must be renewed: half of its lifetime is over."""
        return self.ends is not None and now >= self.begins + (self.ends - self.begins) / 2


def lease(answer: Answer, now: datetime) -> Lease:
    """Parse Vault's answer to a login or to the renewal of a token."""
    auth = answer.get("auth")
    token = auth.get("client_token") if isinstance(auth, dict) else None
    seconds = auth.get("lease_duration") if isinstance(auth, dict) else None
    if not isinstance(auth, dict) or not isinstance(token, str) or not token or not _is_seconds(seconds):
        raise IssuerError("unexpected answer of Vault to a login: the token is missing")
    return Lease(token, now, _end(now, seconds), auth.get("renewable") is True)


def known_lease(token: str, answer: Answer, now: datetime) -> Lease:
    """Parse Vault's answer to the look-up of a token from the settings."""
    data = answer.get("data")
    seconds = data.get("ttl") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not _is_seconds(seconds):
        raise IssuerError("unexpected answer of Vault about its token: the ttl is missing")
    return Lease(token, now, _end(now, seconds), data.get("renewable") is True)


def signed(answer: Answer) -> bytes:
    """Return the signed certificate and its intermediates as PEM, without a root."""
    data = answer.get("data")
    result = data.get("certificate") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(result, str):
        raise IssuerError("unexpected answer of Vault: the certificate is missing")
    above = data.get("ca_chain") or [data.get("issuing_ca")]
    texts = (
        [result, *(item for item in above if isinstance(item, str))] if isinstance(above, list) else [result]
    )
    leaf, *chain = _certificates("\n".join(texts))
    return as_pem(
        [leaf, *(certificate for certificate in chain if certificate.subject != certificate.issuer)]
    )


def roots(answer: Answer) -> tuple[TrustBundle, datetime]:
    """Return the self-signed roots in the chain of a PKI mount, and the end of the signing certificate."""
    data = answer.get("data")
    result = data.get("ca_chain") or data.get("certificate") if isinstance(data, dict) else None
    if not isinstance(result, str):
        raise IssuerError("unexpected answer of Vault: the chain is missing")
    chain = _certificates(result)
    bundle = TrustBundle.from_pems(
        [as_pem([certificate for certificate in chain if certificate.subject == certificate.issuer])]
    )
    return bundle, chain[0].not_valid_after_utc


def _is_seconds(value: object) -> TypeGuard[int]:
    """Return whether a value is a number of seconds below a thousand years, which datetime can add."""
    return isinstance(value, int) and 0 <= value <= _MOST_SECONDS


def _end(now: datetime, seconds: int) -> datetime | None:
    return now + timedelta(seconds=seconds) if seconds else None


def _certificates(text: str) -> list[x509.Certificate]:
    try:
        return certificates_in(text.encode())
    except ValueError as error:
        raise IssuerError(
            "unexpected answer of Vault: it has text that is not a readable certificate in PEM"
        ) from error
