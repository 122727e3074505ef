"""Interface of a service manager, such as systemd, for the agent."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Manager(Protocol):
    """The service manager that started the agent and expects notifications."""

    async def followed(
        self, missing: Callable[[], Awaitable[tuple[str, ...]]], remarks: Callable[[], tuple[str, ...]]
    ) -> None:
        """Report readiness and state of the proxy to the service manager, until cancelled."""

    async def fed(self, alive: Callable[[], bool]) -> None:
        """Report regularly to the service manager (watchdog) that the event loop runs, until cancelled."""

    def reloading(self) -> AbstractContextManager[None]:
        """Return a context that reports the start of a reload to the service manager, and at exit its end."""

    def stopping(self) -> None:
        """Report to the service manager that the agent ends."""
