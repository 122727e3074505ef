"""What every endpoint provider promises."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from mesh.endpoints import Inventory


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old a source's answer is.

    `last_event` is when a change was last seen, `last_full_read` when everything was last read without
    error. While the source cannot be read, `error` says why and `error_since` since when.
    """

    last_event: datetime | None = None
    last_full_read: datetime | None = None
    error: str = ""
    error_since: datetime | None = None


class EndpointProvider(Protocol):
    """A source of workloads and endpoint slices."""

    @property
    def name(self) -> str:
        """Return the name by which people know the source; unique in one program."""
        ...

    def inventory(self) -> Inventory:
        """Return the last good answer, sorted by key; an error never empties it."""
        ...

    def freshness(self) -> Freshness:
        """Say how old the answer is."""
        ...

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the answer current until cancelled, and call `changed` after each change of anything.

        `changed` is called from the event loop; it must be quick and must not raise.
        """
        ...
