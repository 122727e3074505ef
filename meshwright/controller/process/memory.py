"""Tuning of the garbage collector, so collections do not block the event loop.

A mesh of a thousand services has more than a million long-lived objects. A full collection takes up to a
second and finds nothing, because released objects have few or no cycles. Therefore each object is examined at
most twice: when young, and once more when many have survived. Survivors are frozen (`gc.freeze`): never
examined again, and freed by reference counting like any object.

The collector counts allocations minus deallocations. A wave makes hundreds of thousands of objects between
two collections, and the next collection takes as long as all of them. So collections are triggered here, many
times a second while there is work; the collector's own thresholds only matter during computations without a
break. The number of young objects cannot be read cheaply (a list would keep them alive, and disturb other
threads), so the CPU time of the last collection is the measure.

Waves and streams leave no cycles (tests check this). A frozen cycle of a library is found by a thorough
collection: when twice as much is frozen as was alive after the last one, plus the growth of the server, and
only while no proxy is connected, because of the pause (a tenth of a second for each 200 000 objects). At four
times as much, memory matters more, and the collection happens anyway.
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
"""Allocations until the young generation is collected, and factors for the older generations."""

YOUNG_SECONDS: Final = 0.05
"""Seconds between two checks of the young generation."""

USED_SECONDS: Final = 0.005
"""CPU seconds of the process until a collection of the young generation; an idle server allocates little."""

FEW_SECONDS: Final = 0.0001
"""CPU seconds of a collection with few young objects, which then stay young."""

STAYED_SECONDS: Final = 0.003
"""CPU seconds of young collections after which survivors are collected and frozen."""

THOROUGH_SECONDS: Final = 600.0
"""Seconds between two checks whether a thorough collection is needed."""

TRIM_SECONDS: Final = 15.0
"""Seconds between two returns of free memory inside the heaps to the system."""

_ARENA_MAX: Final = (-8, 2)
_MMAP_THRESHOLD: Final = (-3, 128 * 1024)
"""Parameters of glibc's mallopt(3): number and value.

With a lower threshold a storm of connections takes a fifth more CPU time, because most blocks are short-lived
and the system must clear each separate one. With a megabyte the responses of a storm stay in the heaps, whose
free parts lie between long-lived blocks of connections.
"""

LEAST: Final = 500_000
"""Always acceptable number of frozen objects."""

_TOO_MANY: Final = 2
_FAR_TOO_MANY: Final = 4
"""Factors for a thorough collection: without connected proxies, and in any case."""

_PER_VALUE: Final = 8
_PER_STREAM: Final = 250
"""Estimated objects per derived value and per stream; rather too few, or garbage would be counted as used."""

_YOUNGEST: Final = 0
_MIDDLE: Final = 1

_log = structlog.get_logger("controller.process.memory")


@contextlib.contextmanager
def tended() -> Iterator[None]:
    """Tune Python's garbage collector inside the block, and restore the settings at the end."""
    before = gc.get_threshold()
    # Also for collections that the collector starts by itself.
    gc.callbacks.append(_freeze)
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.callbacks.remove(_freeze)
        gc.set_threshold(*before)
        gc.unfreeze()


def returning() -> bool:
    """Configure glibc to return free memory to the system; return False without glibc.

    By default glibc maps large blocks separately and returns them, but only until one was freed: then blocks
    of up to 32 MiB are taken from heaps, eight per processor, and free memory in these stays. gRPC's threads
    use all heaps, so after requests of megabytes a server kept twice the necessary memory.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(*item) for item in (_ARENA_MAX, _MMAP_THRESHOLD))


async def trimming() -> None:
    """Return free pages inside glibc's heaps to the system every TRIM_SECONDS, until cancelled.

    glibc by itself only returns memory at the ends of its heaps. A call takes one or two milliseconds, in a
    thread.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        if trim is not None:
            await asyncio.to_thread(trim, 0)


@contextlib.contextmanager
def built_to_stay() -> Iterator[None]:
    """Disable collections inside the block, and freeze the new objects at the end; for the first wave."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def estimated(values: int, streams: int) -> int:
    """Return a low estimate of the number of Python objects for these derived values and open streams."""
    return _PER_VALUE * values + _PER_STREAM * streams


@dataclass(frozen=True, slots=True)
class MemoryScan:
    """Result of a full garbage collection: objects alive, and the `estimated` number (`estimate`)."""

    alive: int
    estimate: int


async def tending(read_estimate: Callable[[], int], connected: Callable[[], bool]) -> None:
    """Collect young objects often, and all objects when necessary, until cancelled.

    `read_estimate` returns the present `estimated` number, and `connected` whether a proxy is connected.
    """
    last = MemoryScan(gc.get_freeze_count(), read_estimate())
    rounds, young = round(THOROUGH_SECONDS / YOUNG_SECONDS), YoungScan()
    while True:
        for _ in range(rounds):
            await asyncio.sleep(YOUNG_SECONDS)
            young.look()
        last = thorough(last, read_estimate(), connected=connected())


class YoungScan:
    """Collector of young objects, and of survivors when there may be many.

    Both are collected at once: right after a young collection the survivors would be examined a second time,
    and most belong to a wave in progress. While each collection finds many, each includes survivors. `clock`
    is the CPU time of the calling thread in seconds, and `used` the CPU time of the process.
    """

    def __init__(
        self, clock: Callable[[], float] = time.thread_time, used: Callable[[], float] = time.process_time
    ) -> None:
        self._clock = clock
        self._used = used
        self._looked = used()
        self._spent = 0.0

    def look(self) -> None:
        """Collect young objects if there may be many, and freeze survivors if there are many."""
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


def thorough(last: MemoryScan, estimate: int, *, connected: bool) -> MemoryScan:
    """Collect all objects if far more are frozen than expected; return the last result.

    Expected are the objects alive after the last thorough collection, plus the growth of `estimate`.
    """
    frozen, times = gc.get_freeze_count(), _FAR_TOO_MANY if connected else _TOO_MANY
    if frozen <= max(times * (last.alive + max(0, estimate - last.estimate)), LEAST):
        return last
    began = time.thread_time()
    # Frozen objects are invisible to the collector, so all are unfrozen first.
    gc.unfreeze()
    number = gc.collect()
    gc.freeze()
    alive = gc.get_freeze_count()
    seconds = round(time.thread_time() - began, 3)
    _log.info(
        "full garbage collection finished", alive=alive, frozen=frozen, unreachable=number, seconds=seconds
    )
    return MemoryScan(alive, estimate)


def _freeze(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
    """Freeze the survivors of a garbage collection of the middle generation, or of a full one."""
    if phase == "stop" and info["generation"] >= _MIDDLE:
        gc.freeze()
