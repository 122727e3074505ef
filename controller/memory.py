"""Keeping the garbage collector from holding the event loop.

A mesh of a thousand services with its proxies is more than a million objects that stay. Looking through all
of them takes the collector up to a second, and finds nothing: what the server lets go of has no cycles, or
few. So each object is looked at three times at most. The oldest generation is collected as soon as something
has come to it, and what is alive then is frozen: never looked at again, freed like anything else when its
last reference goes. A collection takes as long as what is new since the one before.

A cycle that comes loose after it was frozen is found in the end: when twice as much is frozen as was alive
when all was looked through last, all is looked through again. Memory stays within that.
"""

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from typing import Final, Literal

import structlog

THRESHOLDS: Final = (10_000, 5, 1)
"""Allocations before the youngest generation is looked through; how much more seldom older ones are."""

THOROUGH_SECONDS: Final = 600.0
"""How often it is looked whether so much is frozen that all must be looked through."""

LEAST: Final = 500_000
"""So many frozen objects are never too many."""

_OLDEST: Final = 2

_log = structlog.get_logger("controller.memory")


@contextlib.contextmanager
def tended() -> Iterator[None]:
    """Collect as this module says while the block runs; the collector is as it was before in the end."""
    before = gc.get_threshold()
    gc.callbacks.append(_freeze)
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.callbacks.remove(_freeze)
        gc.set_threshold(*before)
        gc.unfreeze()


@contextlib.contextmanager
def built_to_stay() -> Iterator[None]:
    """Collect nothing meanwhile, and freeze what was made: for the first wave."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


async def tending() -> None:
    """Look through all that is frozen when it has doubled, until cancelled."""
    alive = gc.get_freeze_count()
    while True:
        await asyncio.sleep(THOROUGH_SECONDS)
        alive = thorough(alive)


def thorough(alive: int) -> int:
    """Look through everything if twice as much is frozen as was `alive`; return how much was alive last."""
    frozen = gc.get_freeze_count()
    if frozen <= max(2 * alive, LEAST):
        return alive
    gc.unfreeze()
    found = gc.collect()
    gc.freeze()
    alive = gc.get_freeze_count()
    _log.info("all objects looked through", alive=alive, frozen=frozen, unreachable=found)
    return alive


def _freeze(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
    """Freeze what has survived a collection of everything that is not frozen."""
    if phase == "stop" and info["generation"] == _OLDEST:
        gc.freeze()
