"""Command to export the state of the mesh, for the command line, over the Unix socket only."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from meshwright.admin.http.commands import CommandError, body_of

_NO_STORE = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class StateCommands:
    """Handler of the export. `exported` returns the state, encrypted with a passphrase.

    Call `exported` in a thread, because it may block. It raises CertificateError.
    """

    exported: Callable[[bytes], str]

    async def export(self, request: web.Request) -> web.Response:
        """Return the text of a file with the state; the request is, for example, `{"passphrase": "6162"}`."""
        body = await body_of(request)
        given = body.get("passphrase") if isinstance(body, dict) else None
        try:
            passphrase = bytes.fromhex(given) if isinstance(given, str) else b""
        except ValueError:
            passphrase = b""
        if not passphrase:
            # Without the value, because errors end in logs.
            raise CommandError("passphrase must be a text with the hexadecimal digits of its bytes")
        text = await asyncio.to_thread(self.exported, passphrase)
        return web.json_response({"text": text}, headers=_NO_STORE)


def add_state_commands(app: web.Application, commands: StateCommands) -> None:
    """Add POST /state/export."""
    app.router.add_post("/state/export", commands.export)
