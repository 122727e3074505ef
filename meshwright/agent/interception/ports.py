"""Ports and port ranges, as people write them and as netfilter's `multiport` takes them. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

MULTIPORT_LIMIT: Final = 15
"""Ports in one `multiport` match; a range counts as two."""


@dataclass(frozen=True, slots=True, order=True)
class PortRange:
    """Ports from `first` to `last`, both included; as text in iptables' form, `80` or `8000:8010`."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last <= 65535:
            raise ValueError(
                f"ports {self.first} to {self.last}: must be from 1 to 65535, the smaller number first"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `80`, `8000-8010` or `8000:8010`; raise ValueError."""
        match = re.fullmatch(r"\s*(\d{1,5})(?:\s*[-:]\s*(\d{1,5}))?\s*", text, re.ASCII)
        if match is None:
            raise ValueError(
                f"{text.strip()!r} is not a port; must be a port or a range, for example 80 or 8000-8010"
            )
        return cls(int(match[1]), int(match[2] or match[1]))

    @property
    def slots(self) -> int:
        """Return the number of `multiport` places for the range."""
        return 1 if self.first == self.last else 2

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}:{self.last}"


def merged(ports: Iterable[PortRange]) -> tuple[PortRange, ...]:
    """Return the same ports in rising order, without duplicates, with adjacent ranges merged."""
    port_ranges: list[PortRange] = []
    for port in sorted(ports):
        if port_ranges and port.first <= port_ranges[-1].last + 1:
            port_ranges[-1] = PortRange(port_ranges[-1].first, max(port_ranges[-1].last, port.last))
        else:
            port_ranges.append(port)
    return tuple(port_ranges)


def batches(ports: Sequence[PortRange]) -> Iterator[tuple[PortRange, ...]]:
    """Split ports into groups, each small enough for one `multiport` match."""
    batch: list[PortRange] = []
    for port in ports:
        if sum(one.slots for one in batch) + port.slots > MULTIPORT_LIMIT:
            yield tuple(batch)
            batch = []
        batch.append(port)
    if batch:
        yield tuple(batch)
