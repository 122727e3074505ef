"""Being told to stop: once by a signal, and never twice."""

import asyncio
import os
import signal

import pytest

from cli.signals import until_told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_sets_the_event_and_the_next_one_is_the_system_s(number: signal.Signals) -> None:
    """What the program returns is returned."""
    before = signal.getsignal(number)

    async def program(stop: asyncio.Event) -> object:
        os.kill(os.getpid(), number)
        await stop.wait()
        return signal.getsignal(number)

    by_default = signal.SIG_DFL if number is signal.SIGTERM else signal.default_int_handler
    try:
        assert await until_told(program) == by_default
    finally:
        signal.signal(number, before)
