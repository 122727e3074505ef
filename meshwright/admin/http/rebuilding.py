"""What the command line asks of a server whose ledger is being rebuilt, over the Unix socket alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog
from aiohttp import web

from catalog.store.inventory import holder_of
from catalog.store.view import View
from certs.ledger.rebuilding import Candidate
from meshwright.admin.http.commands import CommandError, body_of
from meshwright.admin.http.json_responses import answered
from meshwright.admin.jsonable import Document, jsonable
from meshwright.admin.readers import ViewReading
from meshwright.sidecars.addresses import plain_address

_log = structlog.get_logger("admin.http.rebuilding")


class LedgerRebuilding(Protocol):
    """A ledger that is being rebuilt; may block, and is called in a thread."""

    def candidates(self) -> tuple[Candidate, ...]:
        """Return what was shown, and what was confirmed; raise CertificateError."""

    def confirm(self, serial: str) -> Candidate:
        """Confirm one that was shown; raise CertificateError."""


@dataclass(frozen=True, slots=True)
class RebuildCommands:
    """What each command does; `rebuilding` is None where the ledger is well."""

    rebuilding: LedgerRebuilding | None
    reading: ViewReading

    async def candidates(self, _request: web.Request) -> web.Response:
        """List what proxies have shown."""
        rebuilding = self._required()
        return await self._listed(rebuilding.candidates)

    async def confirm(self, request: web.Request) -> web.Response:
        """Confirm the certificates that are named; of several those before one that cannot be are."""
        rebuilding, body = self._required(), await body_of(request)
        serials = body.get("serials") if isinstance(body, dict) else None
        if not isinstance(serials, list) or not all(isinstance(each, str) for each in serials):
            raise CommandError("serials must be a list of strings of hexadecimal digits")

        def confirmed() -> tuple[Candidate, ...]:
            for each in map(rebuilding.confirm, serials):
                _log.warning("proxy certificate confirmed", proxy=str(each.name), serial=each.serial)
            return rebuilding.candidates()

        return await self._listed(confirmed)

    def _required(self) -> LedgerRebuilding:
        if self.rebuilding is None:
            raise CommandError("the ledger is not being rebuilt: this server knows whom it lets in")
        return self.rebuilding

    async def _listed(self, found: Callable[[], tuple[Candidate, ...]]) -> web.Response:
        view = self.reading.view()
        return await answered(lambda: {"candidates": [_candidate(each, view) for each in found()]}, {})


def _candidate(found: Candidate, view: View | None) -> Document:
    workload = None if view is None else holder_of(view, found.name)
    own = workload is not None and workload.proxy_name == found.name
    return {
        "cn": str(found.name),
        "serial": found.serial,
        "not_before": jsonable(found.not_before),
        "not_after": jsonable(found.not_after),
        "from": plain_address(found.address),
        "shown_at": jsonable(found.shown_at),
        "workload": str(workload.key) if workload is not None and own else None,
        "confirmed": found.confirmed,
    }


def add_rebuild_commands(app: web.Application, commands: RebuildCommands) -> None:
    """Add GET and POST /certs/rebuild-ledger."""
    app.router.add_get("/certs/rebuild-ledger", commands.candidates)
    app.router.add_post("/certs/rebuild-ledger", commands.confirm)
