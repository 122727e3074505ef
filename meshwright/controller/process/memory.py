"""Keeping the garbage collector from holding the event loop.

A mesh of a thousand services with its proxies is more than a million objects that stay. Looking through all
of them takes the collector up to a second, and finds nothing: what the server lets go of has no cycles, or
few. So each object is looked at twice at most: when it is young, and once more when many have stayed; what is
alive then is frozen: never looked at again, freed like anything else when its last reference goes.

The collector counts what is allocated less what is freed. A wave that puts new values in the place of old
ones makes hundreds of thousands of objects between two collections, and the next one takes as long as all of
them. So it is called many times a second while there is work, and finds little each time; its own count is
for computations that do not let it be called. How many objects there are it does not say (a list of them
would hold them, which breaks what other threads are just making): what the young took is the measure of those
that stayed.

Waves and streams leave no cycles (tests see to it). One of a library that comes loose after it was frozen is
found in the end: when twice as much is frozen as was alive when all was looked through last, and what the
server has come to remember since then, all is looked through again, but not while somebody is connected: it
is one pause, of a tenth of a second for each 200 000 objects. Only where it is four times as much, memory
matters more.
"""

import asyncio
import contextlib
import ctypes
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import structlog

THRESHOLDS: Final = (10_000, 5, 1)
"""Allocations before the youngest generation is looked through; how much more seldom older ones are."""

YOUNG_SECONDS: Final = 0.05
"""How often it is asked whether the young objects may be many."""

USED_SECONDS: Final = 0.005
"""CPU of the whole process after which they may: an idle server makes few, however long it is."""

FEW_SECONDS: Final = 0.0001
"""CPU that a look at few young objects takes: an idle server's, which stay where they are."""

STAYED_SECONDS: Final = 0.003
"""CPU for many young objects after which those that stayed are looked through as well, and frozen."""

THOROUGH_SECONDS: Final = 600.0
"""How often it is looked whether so much is frozen that all must be looked through."""

TRIM_SECONDS: Final = 15.0
"""How often what is free in the midst of the heaps is given back."""

_ARENA_MAX: Final = (-8, 2)
_MMAP_THRESHOLD: Final = (-3, 128 * 1024)
"""glibc's mallopt(3): which setting, and its value. With less a storm takes a fifth more of CPU: most of what
is asked for is short-lived, and each block of its own must be cleared by the system. With a megabyte the
responses to a storm stay in the heaps, whose free parts lie between what connections keep.
"""

LEAST: Final = 500_000
"""So many frozen objects are never too many."""

_TOO_MANY: Final = 2
_FAR_TOO_MANY: Final = 4
"""How many times what should be frozen is, before all is looked through: with nobody there, and anyway."""

_PER_VALUE: Final = 8
_PER_STREAM: Final = 250
"""Objects of a derived value, and of a stream; rather too few, or garbage would be taken for them."""

_YOUNGEST: Final = 0
_MIDDLE: Final = 1

_log = structlog.get_logger("controller.process.memory")


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


def returning() -> bool:
    """Have glibc give memory back that is free again; return whether there is a glibc that can be told.

    It takes large blocks from the system one by one, and gives them back so, but only as long as none was
    freed: then it takes blocks of up to 32 MiB from its heaps, of which it has eight for each processor, and
    what is free in these stays. gRPC's threads use them all: after requests of megabytes a server kept twice
    what it needed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(*each) for each in (_ARENA_MAX, _MMAP_THRESHOLD))


async def trimming() -> None:
    """Have glibc give back the free pages in the midst of its heaps from time to time, until cancelled.

    It does so by itself only at their ends. It takes a millisecond or two, and not the event loop's.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        if trim is not None:
            await asyncio.to_thread(trim, 0)


@contextlib.contextmanager
def built_to_stay() -> Iterator[None]:
    """Collect nothing meanwhile, and freeze what was made: for the first wave."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def estimated(values: int, streams: int) -> int:
    """Return how many objects so many derived values and open streams are made of at least."""
    return _PER_VALUE * values + _PER_STREAM * streams


@dataclass(frozen=True, slots=True)
class MemoryScan:
    """How many objects were alive when all were looked through, and how many were `estimated` then."""

    alive: int
    held: int


async def tending(held: Callable[[], int], connected: Callable[[], bool]) -> None:
    """Look through what is young often, and through all when there is reason to, until cancelled.

    `held` is `estimated` of this moment, `connected` says whether somebody is there.
    """
    last = MemoryScan(gc.get_freeze_count(), held())
    rounds, young = round(THOROUGH_SECONDS / YOUNG_SECONDS), YoungScan()
    while True:
        for _ in range(rounds):
            await asyncio.sleep(YOUNG_SECONDS)
            young.look()
        last = thorough(last, held(), connected=connected())


class YoungScan:
    """Looks through young objects, and through those that have stayed when they may be many.

    Both at once: right after the young were looked through on their own, the survivors would be looked
    through a second time, and most are of a wave that is still being made. While each look finds many, each
    is of both. `clock` is the CPU of the calling thread in seconds, `used` that of the process.
    """

    def __init__(
        self, clock: Callable[[], float] = time.thread_time, used: Callable[[], float] = time.process_time
    ) -> None:
        self._clock = clock
        self._used = used
        self._looked = used()
        self._spent = 0.0

    def look(self) -> None:
        """Collect what is young if it may be much, and freeze what has stayed if that is much."""
        if self._used() - self._looked < USED_SECONDS:
            return
        many = self._spent > STAYED_SECONDS
        began = self._clock()
        gc.collect(_MIDDLE if many else _YOUNGEST)
        spent = self._clock() - began
        if many:
            self._spent = spent if spent > STAYED_SECONDS else 0.0
        elif spent > FEW_SECONDS:
            self._spent += spent
        self._looked = self._used()


def thorough(last: MemoryScan, held: int, *, connected: bool) -> MemoryScan:
    """Look through everything if far more is frozen than there should be; return the last look.

    There should be what was alive then, and what the server remembers besides since then.
    """
    frozen, times = gc.get_freeze_count(), _FAR_TOO_MANY if connected else _TOO_MANY
    if frozen <= max(times * (last.alive + max(0, held - last.held)), LEAST):
        return last
    began = time.thread_time()
    gc.unfreeze()
    found = gc.collect()
    gc.freeze()
    alive = gc.get_freeze_count()
    seconds = round(time.thread_time() - began, 3)
    _log.info("all objects looked through", alive=alive, frozen=frozen, unreachable=found, seconds=seconds)
    return MemoryScan(alive, held)


def _freeze(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
    """Freeze what has survived two collections, or one of everything that is not frozen."""
    if phase == "stop" and info["generation"] >= _MIDDLE:
        gc.freeze()
