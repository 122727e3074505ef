"""The service manager, such as systemd, as far as the agent knows it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Manager(Protocol):
    """Whoever started the agent, and waits for its word."""

    async def followed(
        self, missing: Callable[[], Awaitable[tuple[str, ...]]], remarks: Callable[[], tuple[str, ...]]
    ) -> None:
        """Say when the proxy is ready, and how it is, until cancelled."""

    async def fed(self, alive: Callable[[], bool]) -> None:
        """Say again and again that the event loop turns, until cancelled."""

    def reloading(self) -> AbstractContextManager[None]:
        """Say that files are read again, and when that is over."""

    def stopping(self) -> None:
        """Say that the agent ends."""
