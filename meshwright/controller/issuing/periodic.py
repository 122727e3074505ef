"""Periodic checks of an issuer or CA; an error is logged once, and its end too."""

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
    """Call `look` every `seconds`, until cancelled; `look` raises CertificateError.

    `role` is `issuer` or `authority`, and `kind` the implementation, for example `vault`; both appear in the
    log.
    """
    text = ""
    while True:
        await asyncio.sleep(seconds)
        try:
            await look(clock())
            result = ""
        except CertificateError as error:
            result = str(error)
        if result and result != text:
            _log.error(f"{role} check failed", **{role: kind}, reason=result)
        elif text and not result:
            _log.info(f"{role} check succeeds again", **{role: kind})
        text = result
