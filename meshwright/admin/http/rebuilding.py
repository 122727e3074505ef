"""Commands for a server with a ledger to rebuild, for the command line, over the Unix socket only."""

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
    """The certificate ledger during a rebuild. Callers use a thread, because the methods may block."""

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the proxy certificates shown or confirmed during the rebuild. Raises CertificateError."""

    def confirm(self, serial: str) -> Candidate:
        """Confirm a shown proxy certificate, by an entry in the new ledger. Raises CertificateError."""


@dataclass(frozen=True, slots=True)
class RebuildCommands:
    """Handlers of the commands for a ledger rebuild. `rebuilding` is None if the ledger is intact."""

    rebuilding: LedgerRebuilding | None
    reading: ViewReading

    async def candidates(self, _request: web.Request) -> web.Response:
        """List the certificates presented by proxies."""
        rebuilding = self._required()
        return await self._listed(rebuilding.candidates)

    async def confirm(self, request: web.Request) -> web.Response:
        """Confirm the named certificates in order. After an error, the earlier ones stay confirmed."""
        rebuilding, body = self._required(), await body_of(request)
        serials = body.get("serials") if isinstance(body, dict) else None
        if not isinstance(serials, list) or not all(isinstance(serial, str) for serial in serials):
            raise CommandError("serials must be a list of strings with hexadecimal digits")

        def confirmed() -> tuple[Candidate, ...]:
            # Logged one by one, because an error ends the loop and earlier confirmations stay.
            for candidate in map(rebuilding.confirm, serials):
                _log.warning(
                    "proxy certificate confirmed", proxy=str(candidate.name), serial=candidate.serial
                )
            return rebuilding.candidates()

        return await self._listed(confirmed)

    def _required(self) -> LedgerRebuilding:
        if self.rebuilding is None:
            raise CommandError(
                "the ledger is complete and not being rebuilt, so certificates need not be confirmed"
            )
        return self.rebuilding

    async def _listed(self, result: Callable[[], tuple[Candidate, ...]]) -> web.Response:
        view = self.reading.view()
        return await answered(
            lambda: {"candidates": [_candidate(candidate, view) for candidate in result()]}, {}
        )


def _candidate(candidate: Candidate, view: View | None) -> Document:
    workload = None if view is None else holder_of(view, candidate.name)
    own = workload is not None and workload.proxy_name == candidate.name
    return {
        "cn": str(candidate.name),
        "serial": candidate.serial,
        "not_before": jsonable(candidate.not_before),
        "not_after": jsonable(candidate.not_after),
        "from": plain_address(candidate.address),
        "shown_at": jsonable(candidate.shown_at),
        "workload": str(workload.key) if workload is not None and own else None,
        "confirmed": candidate.confirmed,
    }


def add_rebuild_commands(app: web.Application, commands: RebuildCommands) -> None:
    """Add GET and POST /certs/rebuild-ledger."""
    app.router.add_get("/certs/rebuild-ledger", commands.candidates)
    app.router.add_post("/certs/rebuild-ledger", commands.confirm)
