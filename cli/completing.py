"""What a shell completes that only the running server knows; a server that is not there knows nothing."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import typer

from cli.client import ask
from cli.errors import CommandFailed
from cli.printing.answers import Found, records

_SECONDS: Final = 2.0
"""Whoever has pressed Tab waits."""


def proxies(context: typer.Context, incomplete: str) -> list[str]:
    """Return the common names of proxies that begin so."""
    found = _asked(context, "/debug/proxy")
    return _beginning(incomplete, [str(each.get("cn")) for each in records(found, "proxies")])


def serials(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the serials of proxy certificates that begin so, with whose each is."""
    found = _asked(context, "/debug/certs")
    whose = {
        str(each.get("serial")): str(each.get("cn"))
        for each in records(found, "proxy_certificates")
        if each.get("state") != "revoked"
    }
    return [(serial, whose[serial]) for serial in _beginning(incomplete, whose)]


def certificates(context: typer.Context, incomplete: str) -> list[str]:
    """Return the serials, and the common names of proxies, that begin so."""
    found = records(_asked(context, "/debug/certs"), "proxy_certificates")
    return _beginning(incomplete, {str(each.get(field)) for each in found for field in ("serial", "cn")})


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _asked(context: typer.Context, path: str) -> Found:
    state = context.params.get("state")
    if state is None:
        return {}
    try:
        found = ask(Path(state), "GET", path, seconds=_SECONDS)
    except CommandFailed:
        return {}
    return found if isinstance(found, dict) else {}
