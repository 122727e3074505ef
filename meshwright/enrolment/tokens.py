"""Join tokens: format, record, and decisions. Values only.

The text of a token is `<id>.<secret>[.<pin>...]`. The id is public, the secret is shown once. A pin is the
SHA-256 (hexadecimal) of a CA's public key, with which a machine recognises the server before sending the
secret. For example: `0123456789ab.<43 characters>.<64 digits>`.
"""

import enum
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from certs.errors import RequestError
from certs.lifetimes import MOST_DAYS
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName, is_dns_label

PROOF_KIND: Final = "join-token"
"""Name of this kind of proof in requests."""
MOST_USES: Final = 10_000
MOST_VALID: Final = timedelta(days=366)
MOST_CHARACTERS: Final = 16 * 1024
_ID: Final = re.compile(r"[0-9a-f]{12}")
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 random bytes, base64url
_PIN: Final = re.compile(r"[0-9a-f]{64}")


class TokenRefusal(enum.StrEnum):
    """Reasons to refuse a join token; written to the server's log and never sent to the client."""

    MALFORMED = "token_malformed"
    UNKNOWN = "token_unknown"
    WRONG_SECRET = "token_secret_wrong"  # noqa: S105 - a word for a log
    REVOKED = "token_revoked"
    EXPIRED = "token_expired"
    USED_UP = "token_used_up"


@dataclass(frozen=True, slots=True)
class JoinToken:
    """A join token with the secret, which `repr` does not show."""

    id: str
    secret: str = field(repr=False)
    pins: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the join token as text with the secret; show the text only to the owner of the token."""
        return ".".join((self.id, self.secret, *self.pins))

    @property
    def secret_digest(self) -> str:
        """Return the SHA-256 of the secret. A slow hash is not needed for 256 random bits."""
        return hashlib.sha256(self.secret.encode("ascii")).hexdigest()


def read_token(text: str) -> JoinToken:
    """Parse a join token; raise ValueError. The message contains no part of the token."""
    parts = text.strip().split(".") if len(text) <= MOST_CHARACTERS else []
    if len(parts) < 2 or not _ID.fullmatch(parts[0]) or not _SECRET.fullmatch(parts[1]):
        raise ValueError("the text is not a join token: must be <id>.<secret>[.<pin>...] on one line")
    if not all(map(_PIN.fullmatch, parts[2:])):
        raise ValueError(
            "a pin of the join token is invalid: must be the SHA-256 of a key as 64 hexadecimal digits"
        )
    return JoinToken(parts[0], parts[1], tuple(parts[2:]))


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The stored part of a token. Times are whole seconds in UTC.

    A use belongs to the certified key, so a repeated request with this key does not take a further use.
    Without a `uuid` each use is for a new proxy, with a UUID derived from the key. `days` is the validity of
    certificates, `None` for the default.
    """

    id: str
    service: ServiceName
    namespace: Namespace
    uuid: ProxyUuid | None
    uses: int
    used: int
    made_at: datetime
    expires_at: datetime
    made_by: str = ""
    days: int | None = None
    revoked_at: datetime | None = None

    def standing(self, now: datetime) -> str:
        """Return the state of the join token in words, for example `usable`, `expired` or `used up`."""
        refusal = unusable(self, now) or (TokenRefusal.USED_UP if self.used >= self.uses else None)
        return "usable" if refusal is None else refusal.removeprefix("token_").replace("_", " ")


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """Properties of a join token to be created."""

    service: str
    namespace: str
    uuid: str | None = None
    uses: int = 1
    valid: timedelta = timedelta(days=1)
    days: int | None = None


def recorded(wanted: TokenRequest, identifier: str, made_by: str, now: datetime) -> TokenRecord:
    """Return the record of a new token; raise RequestError with the field and the valid values."""
    for name in ("service", "namespace", "uuid"):
        value = getattr(wanted, name)
        if value is not None and not is_dns_label(value):
            raise RequestError(f"{name} is {value[:80]!r}: must be a DNS-1123 label")
    if not 1 <= wanted.uses <= MOST_USES:
        raise RequestError(f"uses is {wanted.uses}: must be from 1 to {MOST_USES}")
    if wanted.uuid is not None and wanted.uses != 1:
        raise RequestError(f"uses is {wanted.uses}: must be 1 for a token with a uuid")
    if not timedelta(minutes=1) <= wanted.valid <= MOST_VALID:
        raise RequestError(
            f"the validity of the token is {wanted.valid}: must be from 1 minute to {MOST_VALID.days} days"
        )
    if wanted.days is not None and not 1 <= wanted.days <= MOST_DAYS:
        raise RequestError(f"days is {wanted.days}: must be from 1 to {MOST_DAYS}")
    second = now.replace(microsecond=0)
    uuid = None if wanted.uuid is None else ProxyUuid(wanted.uuid)
    return TokenRecord(
        id=identifier,
        service=ServiceName(wanted.service),
        namespace=Namespace(wanted.namespace),
        uuid=uuid,
        uses=wanted.uses,
        used=0,
        made_at=second,
        expires_at=(second + wanted.valid).replace(microsecond=0),
        made_by=made_by,
        days=wanted.days,
    )


def token_of(joined_by: str) -> str | None:
    """Return the id of the token in a ledger entry's `joined_by`, or `None` for another proof."""
    kind, _, shown = joined_by.partition(" ")
    return shown if kind == PROOF_KIND and _ID.fullmatch(shown) else None


def unusable(token: TokenRecord, now: datetime) -> TokenRefusal | None:
    """Return the reason why a token is unusable for anyone, apart from the number of uses."""
    if token.revoked_at is not None:
        return TokenRefusal.REVOKED
    return TokenRefusal.EXPIRED if now >= token.expires_at else None


def has_secret(shown: JoinToken, kept_digest: str) -> bool:
    """Return whether a shown token has the secret whose digest was stored.

    The comparison takes constant time.
    """
    return hmac.compare_digest(kept_digest, shown.secret_digest)


def refusal(token: TokenRecord, now: datetime, *, known_key: bool) -> TokenRefusal | None:
    """Return the reason to refuse a token shown with the secret, or `None`.

    `known_key` is True if the key already has a use of the token.
    """
    if (token_refusal := unusable(token, now)) is not None:
        return token_refusal
    return TokenRefusal.USED_UP if not known_key and token.used >= token.uses else None
