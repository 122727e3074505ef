"""Tests of the loop that limits connections: it goes on after every error."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from xds.connections import guard as guards
from xds.connections.guard import ConnectionGuard
from xds.limits import Limits


async def test_guard_looks_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else limits connections, and the end of the loop would not be noticed."""
    loop, looked = asyncio.get_running_loop(), asyncio.Event()
    reported: list[Mapping[str, Any]] = []
    loop.set_exception_handler(lambda _, context: reported.append(context))
    monkeypatch.setattr(guards, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(guards, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(guards, "LONGEST_SECONDS", 0.0)

    def look(*_: object) -> tuple[tuple[()], float]:
        if not reported:
            raise KeyError("an error of ours")
        loop.call_soon_threadsafe(looked.set)
        return (), 0.0

    monkeypatch.setattr(guards, "_look", look)
    watching = asyncio.create_task(ConnectionGuard(Limits(), lambda *_: None).watch(1))
    async with asyncio.timeout(5):
        await looked.wait()
    watching.cancel()
    await asyncio.wait([watching])
    assert [type(context["exception"]) for context in reported] == [KeyError]
