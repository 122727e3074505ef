"""Tests of stop signals and of the hang-up signal."""

import asyncio
import os
import signal

import pytest

from meshwright.cli.process.signals import not_hung_up, run_until_signal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_sets_the_stop_event_and_restores_its_default(number: signal.Signals) -> None:
    """The first signal sets the event, and a second one has its default effect."""
    before = signal.getsignal(number)

    async def program(stop: asyncio.Event) -> object:
        os.kill(os.getpid(), number)
        await stop.wait()
        return signal.getsignal(number)

    by_default = signal.SIG_DFL if number is signal.SIGTERM else signal.default_int_handler
    try:
        assert await run_until_signal(program) == by_default
    finally:
        signal.signal(number, before)


async def test_hang_up_does_not_stop_the_program() -> None:
    """SIGHUP is ignored before and after the program runs, and only reported while it runs."""
    before, again = signal.getsignal(signal.SIGHUP), asyncio.Event()

    async def program(stop: asyncio.Event) -> bool:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.wait_for(again.wait(), 30)
        return stop.is_set()

    try:
        not_hung_up()
        os.kill(os.getpid(), signal.SIGHUP)
        assert await run_until_signal(program, again) is False
        os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
