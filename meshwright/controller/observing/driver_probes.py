"""Health probes of drivers, sent over the network like probes of Kubernetes."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import aiohttp
import structlog

from meshwright.sidecars.contract.health import HealthProbe, HealthProbes, ProbeScheme

PROBE_SECONDS: Final = 30.0
STARTUP_SECONDS: Final = 30.0
"""Maximum seconds until the startup probe of a driver succeeds."""
_PAUSE_SECONDS: Final = 0.1

_log = structlog.get_logger("controller.probing")


Own = Callable[[], AbstractContextManager[None]]
"""Context manager around a connection that the observer must not count (`HealthProbe.counted`)."""


async def carry_out(probe: HealthProbe, host: str, own: Own = nullcontext) -> str:
    """Probe a driver once; return the error, empty for success. Network errors are never raised."""
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            if probe.scheme is ProbeScheme.HTTP:
                return await _http(probe, host)
            with own() if probe.counted else nullcontext():
                _, writer = await asyncio.open_connection(host, probe.port)
            writer.close()
            return ""
    except TimeoutError:
        return f"timed out after {probe.timeout_seconds:g} s"
    except (OSError, aiohttp.ClientError) as error:
        return f"{type(error).__name__}: {error}"


async def _http(probe: HealthProbe, host: str) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    url = f"http://{bracketed}:{probe.port}{probe.path}"
    async with aiohttp.ClientSession() as session, session.get(url, allow_redirects=False) as response:
        # A redirect counts as success and is not followed, because only the driver itself is probed.
        return "" if 200 <= response.status < 400 else f"status {response.status}"


async def started(probe: HealthProbe, host: str, own: Own = nullcontext) -> str:
    """Probe a driver until the first success, for at most STARTUP_SECONDS.

    Return the last error, empty for success.
    """
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
    """Probe liveness and readiness of all drivers periodically, until cancelled; equal probes are sent once.

    `probes` has the probes and the host by driver. `unwell` receives the names of failing drivers each time.
    """
    while True:
        await asyncio.sleep(PROBE_SECONDS)
        result: list[str] = []
        for name, (asked, host) in probes.items():
            words = ""
            for probe in dict.fromkeys((asked.liveness, asked.readiness)):
                words = words or await carry_out(probe, host, own)
            if words:
                _log.error("driver does not answer its probe", driver=name, reason=words)
                result.append(name)
        unwell(tuple(result))
