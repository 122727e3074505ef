"""Statistics by time: recent data in short cells, older data in long cells, with a bound on all entries.

A cell is a span of time with the numbers reported in it. A closed cell is never changed, so another thread
can add cells up while new ones are filled.
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
    """Duration of one cell in seconds, and the number of kept cells of this duration."""

    seconds: int
    cells: int

    @property
    def span(self) -> int:
        """The seconds covered by all kept cells of this grain."""
        return self.seconds * self.cells


@dataclass(slots=True)
class Cell(Generic[Key]):
    """Traffic statistics reported in one span of time, which begins at `start` (seconds)."""

    start: float
    packed: dict[Key, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span(Generic[Key]):
    """Adjacent cells, and the `seconds` from the beginning of the first cell until now."""

    seconds: float
    cells: tuple[Mapping[Key, bytes], ...]

    def summed(self) -> dict[Key, Figures]:
        """Return the sum of the statistics of all cells by key; for many keys call this in a thread."""
        every: defaultdict[Key, list[bytes]] = defaultdict(list)
        for cell in self.cells:
            for key, packed in cell.items():
                every[key].append(packed)
        return {key: _total(packed) for key, packed in every.items()}


class Cells(Generic[Key]):
    """Statistics of many keys in cells of one or more grains, from short to long; at most `most` entries.

    Beyond the bound the oldest cells are dropped. If the current cell alone reaches its share of the bound,
    new keys are not added to the cell.
    """

    def __init__(self, grains: tuple[Grain, ...], most: int) -> None:
        self._grains = grains
        self._most = most
        self._by_grain: tuple[deque[Cell[Key]], ...] = tuple(deque() for _ in grains)
        self._count = 0
        self.left_out = 0
        """Number of statistics not added because of the bound."""

    def __len__(self) -> int:
        """Return the number of entries (statistics of one key in one cell), over all cells."""
        return self._count

    def add(self, rows: Iterable[tuple[Key, Figures]], now: float) -> None:
        """Add statistics by key to the current cells; `now` is in seconds and never goes back."""
        self.forget(now)
        current = [
            self._current(grain, held, now) for grain, held in zip(self._grains, self._by_grain, strict=True)
        ]
        most = self._most // len(self._grains)
        for key, figures in rows:
            # Packed to 108 bytes; a Figures object with its numbers takes several times as much.
            packed = pack(figures)
            for cell in current:
                before = cell.packed.get(key)
                if before is not None:
                    cell.packed[key] = pack(_unpack(before) + figures)
                elif len(cell.packed) < most:
                    self._count += 1
                    cell.packed[key] = packed
                else:
                    self.left_out += 1
        while self._count > self._most and self._drop_oldest(current):
            pass

    def forget(self, now: float) -> None:
        """Drop cells older than the time for which their grain is kept."""
        for grain, held in zip(self._grains, self._by_grain, strict=True):
            while held and held[0].start <= now - grain.span - grain.seconds:
                self._count -= len(held.popleft().packed)

    def since(self, seconds: float, now: float) -> Span[Key]:
        """Return the cells of the last `seconds` and a little more, as far as they are kept."""
        grain, held = next(
            (item for item in zip(self._grains, self._by_grain, strict=True) if item[0].span >= seconds),
            (self._grains[-1], self._by_grain[-1]),
        )
        cells = [cell for cell in held if cell.start + grain.seconds > now - seconds]
        if not cells:
            return Span(seconds, ())
        # Only the current cell is still being filled, so it is the only one copied.
        closed = (cell.packed for cell in cells[:-1])
        return Span(now - cells[0].start, (*closed, dict(cells[-1].packed)))

    def _current(self, grain: Grain, cells: deque[Cell[Key]], now: float) -> Cell[Key]:
        start = now // grain.seconds * grain.seconds
        if not cells or cells[-1].start < start:
            cells.append(Cell(start))
        return cells[-1]

    def _drop_oldest(self, current: list[Cell[Key]]) -> bool:
        # From the coarsest grain, which has the oldest data.
        for held in reversed(self._by_grain):
            if held[0] not in current:
                self._count -= len(held.popleft().packed)
                return True
        return False


def _total(packed: list[bytes]) -> Figures:
    return Figures.from_numbers(map(sum, zip(*map(_PACKED.unpack, packed), strict=True)))


def pack(figures: Figures) -> bytes:
    """Return statistics in the form of a cell, 108 bytes."""
    numbers = figures.numbers()
    try:
        return _PACKED.pack(*numbers)
    except struct.error:  # beyond the range the maximum is shown; such numbers are not credible
        counts = (min(number, _MOST_COUNT) for number in numbers[:_COUNTS])
        return _PACKED.pack(*counts, *(min(number, _MOST_SUM) for number in numbers[_COUNTS:]))


def _unpack(packed: bytes) -> Figures:
    return Figures.from_numbers(_PACKED.unpack(packed))
