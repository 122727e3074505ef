"""Tests of bash completion, as a user who presses Tab sees it: commands, options, and the server's names."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from meshwright.admin.http.servers import SOCKET_NAME, serving, unix_socket
from meshwright.cli.socket.completion import proxies, serials
from tests.tools.forked_cli import PATH, ROOT

Complete = Callable[..., list[str]]
PROGRAM = f"""\
#!{sys.executable}
from meshwright.cli.main import main
main()
"""
PRESSED = """\
eval "$(_MESHWRIGHT_COMPLETE=source_bash meshwright)"
press=$(complete -p meshwright | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
for line; do
    COMP_WORDS=(meshwright $line)
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    $press meshwright
    echo "${COMPREPLY[@]}"
done
"""
PROXIES = {"proxies": [{"cn": "u1.store.shop"}, {"cn": "u2.buyer.shop"}, {"cn": "v.store.shop"}]}
CERTIFICATES = {
    "proxy_certificates": [
        {"serial": "ab12", "cn": "u1.store.shop", "state": "claimed"},
        {"serial": "ab34", "cn": "u1.store.shop", "state": "revoked"},
    ]
}


@pytest.fixture
def complete(tmp_path: Path) -> Complete:
    """A function that returns bash's completions for lines with an incomplete last word."""
    program = tmp_path / "meshwright"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{PATH}", "PYTHONPATH": str(ROOT)}

    def pressed(*lines: str) -> list[str]:
        command = ["bash", "-c", PRESSED, "bash", *lines]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.splitlines()

    return pressed


async def test_completion_offers_commands_options_and_names_of_the_server(
    complete: Complete, tmp_path: Path
) -> None:
    """Names of proxies and serials that can still be revoked come from the running server."""
    answers: Mapping[str, object] = {"/api/v1/proxies": PROXIES, "/api/v1/certificates": CERTIFICATES}

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(answers[request.path])

    app = web.Application()
    app.router.add_get("/api/v1/{path}", answer)
    at = f"--state {tmp_path}"
    async with serving(app, unix_socket(tmp_path / SOCKET_NAME)):
        result = await asyncio.to_thread(
            complete, "pro", "lint --st", f"proxy show {at} u", f"certs revoke {at} a"
        )
    assert result == ["proxies proxy", "--strict", "u1.store.shop u2.buyer.shop", "ab12"]


def test_completion_without_a_server_offers_no_names(tmp_path: Path) -> None:
    """Without a server the lists are empty, without an error that would disturb the user's line."""
    context: Any = SimpleNamespace(params={"state": tmp_path})
    assert (proxies(context, ""), serials(context, "")) == ([], [])
