"""Looking again and again after who signs: what fails is said once, and that it is well again."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from certs.errors import CertificateError

_log = structlog.get_logger("controller.tending")


async def tending(
    role: str,
    kind: str,
    seconds: float,
    look: Callable[[datetime], Awaitable[None]],
    clock: Callable[[], datetime],
) -> None:
    """Look after an issuer or an authority every so many seconds, until cancelled.

    `role` is what it is, `kind` which of them. What is raised is CertificateError.
    """
    said = ""
    while True:
        await asyncio.sleep(seconds)
        try:
            await look(clock())
            found = ""
        except CertificateError as error:
            found = str(error)
        if found and found != said:
            _log.error(f"{role} not as it should be", **{role: kind}, reason=found)
        elif said and not found:
            _log.info(f"{role} is well again", **{role: kind})
        said = found
