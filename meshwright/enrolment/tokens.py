"""Join tokens: how one is written, what is kept of it, and whether it entitles. Values and decisions only.

Written it is `<id>.<secret>[.<pin>...]`: the id may be said to anybody, the secret is shown once, and a pin
is the SHA-256 (hexadecimal) of a root's public key, by which whoever joins knows whom it may show the secret.
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
"""What requests call a token as a proof."""
MOST_USES: Final = 10_000
MOST_VALID: Final = timedelta(days=366)
MOST_CHARACTERS: Final = 16 * 1024
_ID: Final = re.compile(r"[0-9a-f]{12}")
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 random bytes, base64url
_PIN: Final = re.compile(r"[0-9a-f]{64}")


class TokenRefusal(enum.StrEnum):
    """Why a token entitles nobody; for our log, never for who showed it."""

    MALFORMED = "token_malformed"
    UNKNOWN = "token_unknown"
    WRONG_SECRET = "token_secret_wrong"  # noqa: S105 - a word for a log
    REVOKED = "token_revoked"
    EXPIRED = "token_expired"
    USED_UP = "token_used_up"


@dataclass(frozen=True, slots=True)
class JoinToken:
    """A token as it is shown; nothing that prints it shows its secret."""

    id: str
    secret: str = field(repr=False)
    pins: tuple[str, ...] = ()

    def text(self) -> str:
        """Return it as it is written; only for whoever is to have it."""
        return ".".join((self.id, self.secret, *self.pins))

    @property
    def secret_digest(self) -> str:
        """Return what is kept of the secret: 256 random bits need no slow hash."""
        return hashlib.sha256(self.secret.encode("ascii")).hexdigest()


def read_token(text: str) -> JoinToken:
    """Read a token; raise ValueError, with nothing of it in the words."""
    parts = text.strip().split(".") if len(text) <= MOST_CHARACTERS else []
    if len(parts) < 2 or not _ID.fullmatch(parts[0]) or not _SECRET.fullmatch(parts[1]):
        raise ValueError("it is no join token, which is <id>.<secret>[.<pin>...], in one line")
    if not all(map(_PIN.fullmatch, parts[2:])):
        raise ValueError("a pin of the join token is not the SHA-256 of a key, in 64 hexadecimal digits")
    return JoinToken(parts[0], parts[1], tuple(parts[2:]))


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is kept of a token. Times are whole seconds in UTC.

    A use belongs to the key that was certified: who asks again with it uses nothing. Without a `uuid` each
    use is a proxy of its own, whose UUID follows from its key. `days` is how long certificates live, None as
    those do for which nothing is said.
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
        """Say in a word whether it can be used."""
        refusal = unusable(self, now) or (TokenRefusal.USED_UP if self.used >= self.uses else None)
        return "usable" if refusal is None else refusal.removeprefix("token_").replace("_", " ")


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token that is asked for."""

    service: str
    namespace: str
    uuid: str | None = None
    uses: int = 1
    valid: timedelta = timedelta(days=1)
    days: int | None = None


def recorded(wanted: TokenRequest, identifier: str, made_by: str, now: datetime) -> TokenRecord:
    """Return what is to be kept of a token; raise RequestError, which names the field and what is right."""
    for name in ("service", "namespace", "uuid"):
        value = getattr(wanted, name)
        if value is not None and not is_dns_label(value):
            raise RequestError(f"{name} is {value[:80]!r}: must be a DNS-1123 label")
    if not 1 <= wanted.uses <= MOST_USES:
        raise RequestError(f"uses is {wanted.uses}: must be from 1 to {MOST_USES}")
    if wanted.uuid is not None and wanted.uses != 1:
        raise RequestError(f"uses is {wanted.uses}: a token for one proxy (uuid) has one use")
    if not timedelta(minutes=1) <= wanted.valid <= MOST_VALID:
        raise RequestError(f"a token is valid from a minute to {MOST_VALID.days} days, not {wanted.valid}")
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
    """Return the id of the token by which somebody joined, as the ledger has it; None if by another proof."""
    kind, _, shown = joined_by.partition(" ")
    return shown if kind == PROOF_KIND and _ID.fullmatch(shown) else None


def unusable(token: TokenRecord, now: datetime) -> TokenRefusal | None:
    """Return why nobody can use a token any more, were there uses left."""
    if token.revoked_at is not None:
        return TokenRefusal.REVOKED
    return TokenRefusal.EXPIRED if now >= token.expires_at else None


def has_secret(shown: JoinToken, kept_digest: str) -> bool:
    """Say whether a token is shown with its secret, of which the digest was kept."""
    return hmac.compare_digest(kept_digest, shown.secret_digest)


def refusal(token: TokenRecord, now: datetime, *, known_key: bool) -> TokenRefusal | None:
    """Return why a token does not entitle who shows it with its secret; None if it does.

    `known_key`: a use belongs to this key already.
    """
    if (found := unusable(token, now)) is not None:
        return found
    return TokenRefusal.USED_UP if not known_key and token.used >= token.uses else None
