"""Commands about join tokens, for the command line, over the Unix socket only."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog
from aiohttp import web

from catalog.store.view import View
from meshwright.admin.http.audit import name_object, user_of
from meshwright.admin.http.commands import CommandError, ProxyRequest, body_of, require_holder
from meshwright.admin.http.json_responses import answered
from meshwright.admin.jsonable import Document, jsonable
from meshwright.admin.readers import ViewReading
from meshwright.enrolment.tokens import JoinToken, TokenRecord, TokenRequest

_log = structlog.get_logger("admin.http.tokens")

_NO_STORE: Final = {"Cache-Control": "no-store"}


class JoinTokens(Protocol):
    """Store of join tokens. Callers use a thread, because the methods may block."""

    def create(self, wanted: TokenRequest, made_by: str) -> tuple[JoinToken, TokenRecord]:
        """Create a token. Raises CertificateError."""

    def tokens(self) -> tuple[TokenRecord, ...]:
        """Return the records of all join tokens. Raises CertificateError."""

    def revoke(self, token: str) -> TokenRecord:
        """Revoke the join token with this id. Raises CertificateError."""


def request_document(wanted: TokenRequest) -> Document:
    """Return the JSON of a request."""
    return {
        "service": wanted.service,
        "namespace": wanted.namespace,
        "uuid": wanted.uuid,
        "uses": wanted.uses,
        "valid_seconds": int(wanted.valid.total_seconds()),
        "days": wanted.days,
    }


def read_token_request(body: object) -> TokenRequest:
    """Read the JSON of a request for a join token. Raises CommandError, which names the field."""
    if not isinstance(body, dict):
        raise CommandError("the body must be a JSON object")
    uuid = body.get("uuid")
    for field in ("service", "namespace", *(("uuid",) if uuid is not None else ())):
        if not isinstance(body.get(field), str):
            raise CommandError(f"{field} must be a DNS-1123 label")
    uses, seconds = _number(body, "uses", 1), _number(body, "valid_seconds", 86400)
    days = None if body.get("days") is None else _number(body, "days", 1)
    # timedelta raises OverflowError for very large numbers.
    valid = timedelta(seconds=min(seconds, 10**9))
    return TokenRequest(body["service"], body["namespace"], uuid, uses, valid, days)


def require_expected(view: View | None, wanted: TokenRequest, *, anyway: bool) -> None:
    """Raise UnknownHolder for a token of a proxy without a workload. Without a view the token is accepted."""
    if wanted.uuid is not None:
        named = ProxyRequest(wanted.uuid, wanted.service, wanted.namespace, anyway=anyway)
        require_holder(view, named)


def _number(body: dict[str, object], field: str, default: int) -> int:
    value = body.get(field, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CommandError(f"{field} must be a whole number from 1")
    return value


def token_document(record: TokenRecord, now: datetime) -> Document:
    """Return the JSON of a token, without the secret."""
    return {
        "id": record.id,
        "service": record.service,
        "namespace": record.namespace,
        "uuid": record.uuid,
        "state": record.standing(now),
        "uses": record.uses,
        "used": record.used,
        "days": record.days,
        "made_at": jsonable(record.made_at),
        "made_by": record.made_by,
        "expires_at": jsonable(record.expires_at),
        "revoked_at": jsonable(record.revoked_at),
    }


def tokens_document(records: Iterable[TokenRecord], now: datetime) -> Document:
    """Return all join tokens as JSON, without the secrets."""
    return {"join_tokens": [token_document(record, now) for record in records]}


@dataclass(frozen=True, slots=True)
class TokenCommands:
    """Handlers of the commands about join tokens. `clock` returns the time of day."""

    tokens: JoinTokens
    reading: ViewReading
    clock: Callable[[], datetime]

    async def create(self, request: web.Request) -> web.Response:
        """Create a join token. The answer contains the secret."""
        body = await body_of(request)
        wanted = read_token_request(body)
        anyway = isinstance(body, dict) and body.get("anyway") is True
        require_expected(self.reading.view(), wanted, anyway=anyway)
        token, record = await asyncio.to_thread(self.tokens.create, wanted, user_of(request).user)
        name_object(request, id=record.id)
        _log.info("join token created", by=record.made_by, **_described(record))
        return web.json_response(
            {"token": token.text(), **token_document(record, record.made_at)}, headers=_NO_STORE
        )

    async def listed(self, request: web.Request) -> web.Response:
        """Return all join tokens, without the secrets."""
        del request
        return await answered(lambda: tokens_document(self.tokens.tokens(), self.clock()), _NO_STORE)

    async def revoke(self, request: web.Request) -> web.Response:
        """Revoke a join token."""
        body = await body_of(request)
        wanted = body.get("token") if isinstance(body, dict) else None
        if not isinstance(wanted, str):
            raise CommandError("token must be the id of a join token")
        record = await asyncio.to_thread(self.tokens.revoke, wanted)
        _log.info("join token revoked", by=user_of(request).user, **_described(record))
        return web.json_response(token_document(record, self.clock()), headers=_NO_STORE)


def _described(record: TokenRecord) -> dict[str, object]:
    names = {"service": record.service, "namespace": record.namespace}
    bound = {} if record.uuid is None else {"uuid": record.uuid}
    until = record.expires_at.isoformat()
    return {
        "id": record.id,  # the log withholds fields with the name `token`
        **names,
        **bound,
        "uses": record.uses,
        "used": record.used,
        "expires_at": until,
    }


def add_token_commands(app: web.Application, commands: TokenCommands) -> None:
    """Add POST /certs/tokens, GET /certs/tokens and POST /certs/tokens/revoke.

    The answer to the first contains the token. The token passes through a socket that only the server's user
    can open, and the server stores a digest of the secret only.
    """
    app.router.add_post("/certs/tokens", commands.create)
    app.router.add_get("/certs/tokens", commands.listed)
    app.router.add_post("/certs/tokens/revoke", commands.revoke)
