"""Shell completion of names that only a running server knows; empty without a server."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.printing.responses import Found, records
from meshwright.cli.socket.client import api

_SECONDS: Final = 2.0
"""Longest wait, because the user has pressed Tab and waits too."""


def proxies(context: typer.Context, incomplete: str) -> list[str]:
    """Return the common names of proxies with this beginning."""
    result = _request(context, "/proxies")
    return _beginning(incomplete, [str(record.get("cn")) for record in records(result, "proxies")])


def serials(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the serials of unrevoked proxy certificates with this beginning, with their proxies."""
    result = _request(context, "/certificates")
    whose = {
        str(record.get("serial")): str(record.get("cn"))
        for record in records(result, "proxy_certificates")
        if record.get("state") != "revoked"
    }
    return [(serial, whose[serial]) for serial in _beginning(incomplete, whose)]


def certificates(context: typer.Context, incomplete: str) -> list[str]:
    """Return the serials and the common names of proxy certificates with this beginning."""
    result = records(_request(context, "/certificates"), "proxy_certificates")
    return _beginning(incomplete, {str(item.get(field)) for item in result for field in ("serial", "cn")})


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _request(context: typer.Context, path: str) -> Found:
    state = context.params.get("state")
    if state is None:
        return {}
    try:
        return api(Path(state), path, seconds=_SECONDS)
    # An error message would appear in the middle of the user's command line.
    except CommandFailed:
        return {}
