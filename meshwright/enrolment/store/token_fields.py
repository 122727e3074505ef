"""Fields of the records of join tokens, and of their uses.

The token `0123456789ab` has the key `tokens/0123456789ab`, and its uses have the keys
`tokens/0123456789ab/uses/0` and so on, as many as the token allows. A use is created where there is none, or
taken where another key has given it back, so that a token never has more uses than allowed, although many
servers take them at once. Of the secret there is only the SHA-256. Times are whole seconds since 1970, UTC.

A pure module.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from meshwright.enrolment.tokens import JoinToken, TokenRecord
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.key import Key, key_of, words_of

TOKENS: Final = key_of("tokens")
"""Common beginning of the keys of all tokens and their uses."""

_USES: Final = "uses"
_LONGEST_ID: Final = 64
_LAST_SECOND: Final = int(datetime.max.replace(tzinfo=UTC).timestamp()) - 1


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A join token as it is stored, with the digest of its secret; the number of uses is not a part."""

    record: TokenRecord
    secret_digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenWithUses:
    """A join token as it is stored, and the time of each use by the digest of the key that has the use."""

    stored: StoredToken
    uses: Mapping[str, datetime]


def is_token_id(token: str) -> bool:
    """Return whether a text may be the id of a token, so that it can be a part of a key."""
    return token.isascii() and token.isalnum() and len(token) <= _LONGEST_ID


def key_of_token(token: str) -> Key:
    """Return the key of the token with this id."""
    return key_of(*words_of(TOKENS), token)


def key_of_use(token: str, slot: int) -> Key:
    """Return the key of one use of a token, from 0."""
    return key_of(*words_of(TOKENS), token, _USES, str(slot))


def token_and_slot(key: Key) -> tuple[str, int | None]:
    """Return the token of a key, and the use, or None for the token itself; raise UnreadableContentError."""
    match words_of(key):
        case (_, token):
            return token, None
        case (_, token, "uses", slot) if slot.isdecimal():
            return token, int(slot)
        case _:
            raise UnreadableContentError("the key is not of the form tokens/ID or tokens/ID/uses/NUMBER")


def first_slot(key_digest: str, uses: int) -> int:
    """Return the use that a key tries first.

    A repeated request finds the use of the first one, and requests of different keys seldom meet.
    """
    return int.from_bytes(hashlib.sha256(key_digest.encode()).digest()[:8]) % uses


def token_fields(token: JoinToken, record: TokenRecord) -> Fields:
    """Return the fields of a new token."""
    return stored_fields(StoredToken(record, token.secret_digest))


def stored_fields(stored: StoredToken) -> Fields:
    """Return the fields of a stored token."""
    record = stored.record
    fields = {
        "secret_digest": stored.secret_digest,
        "service": record.service,
        "namespace": record.namespace,
        "uuid": record.uuid,
        "uses": record.uses,
        "days": record.days,
        "made_at": seconds(record.made_at),
        "expires_at": seconds(record.expires_at),
        "made_by": record.made_by,
        "revoked_at": None if record.revoked_at is None else seconds(record.revoked_at),
    }
    return {name: value for name, value in fields.items() if value is not None}


def read_token_fields(token: str, fields: Fields) -> StoredToken:
    """Return the token with an id from its record; raise UnreadableContentError with the key."""
    try:
        return _stored_token(token, fields)
    except UnreadableContentError as error:
        raise UnreadableContentError(f"record {key_of_token(token)}: {error}") from error


def _stored_token(token: str, fields: Fields) -> StoredToken:
    texts = {name: _text(fields, name) for name in ("secret_digest", "service", "namespace", "made_by")}
    uuid, days = fields.get("uuid"), fields.get("days")
    if uuid is not None and not isinstance(uuid, str):
        raise UnreadableContentError("uuid: expected a text")
    record = TokenRecord(
        id=token,
        service=ServiceName(texts["service"]),
        namespace=Namespace(texts["namespace"]),
        uuid=None if uuid is None else ProxyUuid(uuid),
        uses=_number(fields, "uses", 1),
        used=0,
        made_at=_time(fields, "made_at"),
        expires_at=_time(fields, "expires_at"),
        made_by=texts["made_by"],
        days=None if days is None else _number(fields, "days", 1),
        revoked_at=None if fields.get("revoked_at") is None else _time(fields, "revoked_at"),
    )
    return StoredToken(record, texts["secret_digest"])


def with_revocation(fields: Fields, now: datetime) -> Fields | None:
    """Return the fields of a token that is revoked, or None if it is revoked already."""
    return None if fields.get("revoked_at") is not None else {**fields, "revoked_at": seconds(now)}


def with_former_revocation(fields: Fields, former: Fields) -> Fields | None:
    """Return the fields of a token with the revocation in former fields; None if nothing is added."""
    revoked_at = former.get("revoked_at")
    if revoked_at is None or fields.get("revoked_at") is not None:
        return None
    return {**fields, "revoked_at": revoked_at}


def end_of_token(fields: Fields) -> datetime | None:
    """Return the end of a token from its fields, or from those of a use; None if it is not recorded."""
    if "expires_at" not in fields:
        return None
    return _time(fields, "expires_at")


def use_fields(key_digest: str, now: datetime, expires_at: datetime | None = None) -> Fields:
    """Return the fields of a use by a key, with the end of the token if it is known."""
    fields: Fields = {"key": key_digest, "at": seconds(now)}
    return fields if expires_at is None else {**fields, "expires_at": seconds(expires_at)}


def given_back(fields: Fields) -> Fields:
    """Return the fields of a use that its key has given back, so that another key can have it.

    The record stays, because a removal could not be told from a loss of the store.
    """
    return {name: value for name, value in fields.items() if name != "key"} | {"is_free": True}


def is_given_back(fields: Fields) -> bool:
    """Return whether the fields are those of a use that was given back."""
    return fields.get("is_free") is True


def read_use(fields: Fields) -> str:
    """Return the digest of the key that has a use; raise UnreadableContentError."""
    return _text(fields, "key")


def read_time_of_use(fields: Fields) -> datetime:
    """Return the time of a use; raise UnreadableContentError."""
    return _time(fields, "at")


def is_use_of(key_digest: str) -> Callable[[Fields], bool]:
    """Return a condition for the fields of a use: the key has the use."""
    return lambda fields: read_use(fields) == key_digest


def seconds(moment: datetime) -> int:
    """Return a time in stored form."""
    return int(moment.timestamp())


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise UnreadableContentError(f"{name}: expected a text")
    return value


def _number(fields: Fields, name: str, least: int) -> int:
    value = fields.get(name)
    if type(value) is not int or not least <= value <= _LAST_SECOND:
        raise UnreadableContentError(f"{name}: expected a whole number from {least}")
    return value


def _time(fields: Fields, name: str) -> datetime:
    return datetime.fromtimestamp(_number(fields, name, 0), UTC)
