"""News of other servers: proxy and service certificates that they have changed in the shared store."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from certs.ledger.entry import LedgerEntry
from certs.state.stored_pair import Holder
from meshwright.controller.sharing.store.server_loop import ServerLoop
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName


class StoreNews:
    """Queue from the thread of the store to the server's event loop.

    `hear_entries` and `hear_pairs` are for the thread of the store. The news wait until `deliver` runs.
    """

    def __init__(self, server_loop: ServerLoop) -> None:
        self._server_loop = server_loop
        self._woken = asyncio.Event()
        self._entries: deque[tuple[LedgerEntry, ...]] = deque()
        self._holders: deque[frozenset[Holder]] = deque()

    def hear_entries(self, entries: tuple[LedgerEntry, ...]) -> None:
        """Take proxy certificates that other servers have changed."""
        self._entries.append(entries)
        self._server_loop.call(self._woken.set)

    def hear_pairs(self, holders: frozenset[Holder]) -> None:
        """Take the holders of service certificates that other servers have stored."""
        self._holders.append(holders)
        self._server_loop.call(self._woken.set)

    def drop(self) -> None:
        """Drop all news, because the stores have them already, and the other parts begin with the stores."""
        self._entries.clear()
        self._holders.clear()

    async def deliver(
        self,
        heard: Callable[[tuple[LedgerEntry, ...]], None],
        compared: Callable[[Iterable[ServiceIdentity]], None],
    ) -> None:
        """Call `heard` and `compared` with the news, until cancelled."""
        while True:
            while self._entries:
                heard(self._entries.popleft())
            while self._holders:
                compared(map(_identity, sorted(self._holders.popleft())))
            await self._woken.wait()
            self._woken.clear()


def _identity(holder: Holder) -> ServiceIdentity:
    _, namespace, account = holder.split("/")
    return ServiceIdentity(Namespace(namespace), ServiceAccountName(account))
