"""Asking a driver's health probes: over the network, as anybody would."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import aiohttp
import structlog

from meshwright.sidecars.contract.health import HealthProbe, HealthProbes, ProbeScheme

PROBE_SECONDS: Final = 30.0
STARTUP_SECONDS: Final = 30.0
"""How long a driver that has started may take until its startup probe succeeds."""
_PAUSE_SECONDS: Final = 0.1

_log = structlog.get_logger("controller.probing")


Own = Callable[[], AbstractContextManager[None]]
"""Makes what surrounds a connection that is `counted` (sidecars.contract.health.HealthProbe)."""


async def carry_out(probe: HealthProbe, host: str, own: Own = nullcontext) -> str:
    """Ask once; return what is wrong, empty for success. Never raises for what the network does."""
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            if probe.scheme is ProbeScheme.HTTP:
                return await _http(probe, host)
            with own() if probe.counted else nullcontext():
                _, writer = await asyncio.open_connection(host, probe.port)
            writer.close()
            return ""
    except TimeoutError:
        return f"no answer in {probe.timeout_seconds:g} s"
    except (OSError, aiohttp.ClientError) as error:
        return f"{type(error).__name__}: {error}"


async def _http(probe: HealthProbe, host: str) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    url = f"http://{bracketed}:{probe.port}{probe.path}"
    async with aiohttp.ClientSession() as session, session.get(url, allow_redirects=False) as response:
        # A redirect is an answer: nobody but the driver is asked on its behalf.
        return "" if 200 <= response.status < 400 else f"status {response.status}"


async def started(probe: HealthProbe, host: str, own: Own = nullcontext) -> str:
    """Ask until it succeeds, for STARTUP_SECONDS at most; return what was wrong at last."""
    words = ""
    try:
        async with asyncio.timeout(STARTUP_SECONDS):
            while words := await carry_out(probe, host, own):  # noqa: ASYNC110 - nobody tells when it answers
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        return words or "no answer"
    return ""


async def probing(
    probes: Mapping[str, tuple[HealthProbes, str]],
    unwell: Callable[[tuple[str, ...]], None],
    own: Own = nullcontext,
) -> None:
    """Ask every driver's liveness and readiness from time to time, until cancelled; `probes` have their host.

    Two that are the same are asked once.
    `unwell` is told which drivers do not answer, each time.
    """
    while True:
        await asyncio.sleep(PROBE_SECONDS)
        found: list[str] = []
        for name, (asked, host) in probes.items():
            words = ""
            for probe in dict.fromkeys((asked.liveness, asked.readiness)):
                words = words or await carry_out(probe, host, own)
            if words:
                _log.error("driver does not answer its probe", driver=name, reason=words)
                found.append(name)
        unwell(tuple(found))
