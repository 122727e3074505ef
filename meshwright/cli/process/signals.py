"""Signals of long-running programs."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_Ending = TypeVar("_Ending")

_log = structlog.get_logger("cli.signals")


def not_hung_up() -> None:
    """Ignore SIGHUP from now on, because a starting program has nothing to reload yet."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


async def run_until_signal(
    run: Callable[[asyncio.Event], Awaitable[_Ending]], again: asyncio.Event | None = None
) -> _Ending:
    """Run a program; set its event on SIGTERM and SIGINT, and `again` on SIGHUP.

    A second SIGTERM or SIGINT ends the process at once, as without a handler; the kernel then ends child
    processes that must not outlive it. SIGHUP never ends the process.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def begin(number: signal.Signals) -> None:
        _log.info("shutdown started", signal=number.name)
        stop.set()
        for item in _SIGNALS:
            # The next signal has its default action.
            loop.remove_signal_handler(item)

    for item in _SIGNALS:
        loop.add_signal_handler(item, begin, item)
    if again is None:
        return await run(stop)
    loop.add_signal_handler(signal.SIGHUP, again.set)
    try:
        return await run(stop)
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        # Without a handler, SIGHUP would end a process that is draining.
        not_hung_up()
