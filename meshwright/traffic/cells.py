"""Figures by time: fine of late, coarse of what is longer ago, and never more than so many.

A cell is a span of time with what was told in it. Cells that are closed are never changed, so that they can
be added up elsewhere than where they are filled.
"""

import struct
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from meshwright.traffic.statistics import Figures

Key = TypeVar("Key", bound=Hashable)

_PACKED: Final = struct.Struct("<21I3Q")
_MOST_COUNT: Final = 2**32 - 1
_MOST_SUM: Final = 2**64 - 1
_COUNTS: Final = 21


@dataclass(frozen=True, slots=True)
class Grain:
    """How long a cell is, and how many of them are kept."""

    seconds: int
    cells: int

    @property
    def span(self) -> int:
        """The seconds that all of them cover."""
        return self.seconds * self.cells


@dataclass(slots=True)
class Cell(Generic[Key]):
    """What was told from `start` on, in seconds."""

    start: float
    packed: dict[Key, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span(Generic[Key]):
    """Cells side by side, and the `seconds` from the beginning of the first until now."""

    seconds: float
    cells: tuple[Mapping[Key, bytes], ...]

    def summed(self) -> dict[Key, Figures]:
        """Return the figures of each key; for a thread, where there are many."""
        every: defaultdict[Key, list[bytes]] = defaultdict(list)
        for cell in self.cells:
            for key, packed in cell.items():
                every[key].append(packed)
        return {key: _total(packed) for key, packed in every.items()}


class Cells(Generic[Key]):
    """The figures of many keys in cells of one or more grains, from fine to coarse; `most` entries in all.

    Where that is not enough, what is longest ago goes first, and where one cell alone is too much, keys that
    are new in it are not taken.
    """

    def __init__(self, grains: tuple[Grain, ...], most: int) -> None:
        self._grains = grains
        self._most = most
        self._held: tuple[deque[Cell[Key]], ...] = tuple(deque() for _ in grains)
        self._count = 0
        self.left_out = 0
        """Figures that were not taken."""

    def __len__(self) -> int:
        """Return how many entries there are."""
        return self._count

    def add(self, rows: Iterable[tuple[Key, Figures]], now: float) -> None:
        """Count rows as of now; `now` is in seconds and only goes forward."""
        self.forget(now)
        current = [
            self._current(grain, held, now) for grain, held in zip(self._grains, self._held, strict=True)
        ]
        most = self._most // len(self._grains)
        for key, figures in rows:
            packed = _pack(figures)
            for cell in current:
                before = cell.packed.get(key)
                if before is not None:
                    cell.packed[key] = _pack(_unpack(before) + figures)
                elif len(cell.packed) < most:
                    self._count += 1
                    cell.packed[key] = packed
                else:
                    self.left_out += 1
        while self._count > self._most and self._drop_oldest(current):
            pass

    def forget(self, now: float) -> None:
        """Forget what is longer ago than is kept."""
        for grain, held in zip(self._grains, self._held, strict=True):
            while held and held[0].start <= now - grain.span - grain.seconds:
                self._count -= len(held.popleft().packed)

    def since(self, seconds: float, now: float) -> Span[Key]:
        """Return the cells of the last `seconds` and a little more, or of as long as is kept."""
        grain, held = next(
            (each for each in zip(self._grains, self._held, strict=True) if each[0].span >= seconds),
            (self._grains[-1], self._held[-1]),
        )
        found = [each for each in held if each.start + grain.seconds > now - seconds]
        if not found:
            return Span(seconds, ())
        closed = (each.packed for each in found[:-1])
        return Span(now - found[0].start, (*closed, dict(found[-1].packed)))

    def _current(self, grain: Grain, held: deque[Cell[Key]], now: float) -> Cell[Key]:
        start = now // grain.seconds * grain.seconds
        if not held or held[-1].start < start:
            held.append(Cell(start))
        return held[-1]

    def _drop_oldest(self, current: list[Cell[Key]]) -> bool:
        for held in reversed(self._held):
            if held[0] not in current:
                self._count -= len(held.popleft().packed)
                return True
        return False


def _total(packed: list[bytes]) -> Figures:
    return Figures.of(map(sum, zip(*map(_PACKED.unpack, packed), strict=True)))


def _pack(figures: Figures) -> bytes:
    numbers = figures.numbers()
    try:
        return _PACKED.pack(*numbers)
    except struct.error:  # so much in one cell is not credible, and is enough to say
        counts = (min(each, _MOST_COUNT) for each in numbers[:_COUNTS])
        return _PACKED.pack(*counts, *(min(each, _MOST_SUM) for each in numbers[_COUNTS:]))


def _unpack(packed: bytes) -> Figures:
    return Figures.of(_PACKED.unpack(packed))
