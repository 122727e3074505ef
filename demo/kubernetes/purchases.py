"""Purchases on demand from any Pod, counted by client and server."""

import secrets
import time
from typing import Final

from demo.apps import names
from demo.apps.control import AppClient
from demo.apps.probe import Probe
from demo.display.verdicts import CellResult, Verdict
from demo.kubernetes.pods import Program
from demo.matrix import REQUESTS

_SETTLE_SECONDS: Final = 60.0


async def buy(client: Program, server: Program, host: str, port: int, count: int = REQUESTS) -> CellResult:
    """Let a program buy books; return the outcomes at the client and the count of the server."""
    token = secrets.token_hex(8)
    headers = tuple(names.client_headers(client.selected.container).items())
    probe = Probe(host, port, token, count, "GET", names.BUY_A_BOOK, headers)
    outcomes = await AppClient(client).probe(probe)
    return CellResult(outcomes.results, (await AppClient(server).status()).tokens[token])


async def settle(client: Program, server: Program, host: str, port: int, *, served: bool) -> CellResult:
    """Buy one book at a time until the outcome is as expected, at most 60 seconds.

    Return the last outcome.
    """
    limit = time.monotonic() + _SETTLE_SECONDS
    while True:
        cell_result = await buy(client, server, host, port, 1)
        if (cell_result.is_served(1) if served else cell_result.is_denied(1)) or time.monotonic() > limit:
            return cell_result


async def judge(
    client: Program, server: Program, host: str, port: int, *, phase: str, subject: str, served: bool
) -> Verdict:
    """Wait until purchases have the expected outcome, then make 10 more; all of them must have it."""
    await settle(client, server, host, port, served=served)
    cell_result = await buy(client, server, host, port)
    holds = cell_result.is_served(REQUESTS) if served else cell_result.is_denied(REQUESTS)
    return Verdict(phase, subject, "served" if served else "denied", str(cell_result), holds)
