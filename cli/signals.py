"""Programs that run until they are told to stop."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_Ending = TypeVar("_Ending")

_log = structlog.get_logger("cli.signals")


async def until_told(run: Callable[[asyncio.Event], Awaitable[_Ending]]) -> _Ending:
    """Run a program, and set its event on SIGTERM and SIGINT.

    A second one ends the process as if nobody listened; the kernel then ends what must not outlive it.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def begin(number: signal.Signals) -> None:
        _log.info("stopping", signal=number.name)
        stop.set()
        for each in _SIGNALS:
            loop.remove_signal_handler(each)

    for each in _SIGNALS:
        loop.add_signal_handler(each, begin, each)
    return await run(stop)
