"""Interface of a service manager, such as systemd, for the agent."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Manager(Protocol):
    """The service manager that started the agent and expects notifications."""

    async def followed(
        self, missing: Callable[[], Awaitable[tuple[str, ...]]], remarks: Callable[[], tuple[str, ...]]
    ) -> None:
        """Report readiness and state of the proxy, until cancelled."""

    async def fed(self, alive: Callable[[], bool]) -> None:
        """Report regularly that the event loop runs (watchdog), until cancelled."""

    def reloading(self) -> AbstractContextManager[None]:
        """Report the start and end of a reload."""

    def stopping(self) -> None:
        """Report that the agent ends."""
