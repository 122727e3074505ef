"""The shared store of one server: opened before all other parts, and followed as long as the server runs."""

import asyncio
import os
import re
import secrets
import socket
from asyncio import FIRST_COMPLETED
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final

from certs.custody import AuthorityWithLedger
from certs.errors import StateError
from certs.ledger.entry import LedgerEntry
from certs.shared_custody import LISTED, SEAL, SharedStores, open_shared
from certs.state.stored_pair import Holder
from meshwright.controller.errors import StartupError
from meshwright.controller.kubernetes.home import home
from meshwright.controller.settings.settings import Settings
from meshwright.controller.sharing.shared_tokens import LISTED_TOKENS, SharedTokens
from meshwright.controller.sharing.store_thread import StoreThread
from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.errors import KubeError
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain
from meshwright.records.contract import Changes, RecordsError, ReplicaId, StoreUnavailableError
from meshwright.records.key import Key
from meshwright.records.kubernetes.store import KubernetesRecords

LIST_SECONDS: Final = 60.0
"""Longest time in seconds until the first lists of the store; then the start fails."""

LOOK_SECONDS: Final = 5.0
"""Seconds between two reads by which a server notices that the store is away."""

_LOOKING: Final = "shared store"


class ListedRecords(KubernetesRecords):
    """Records that know which prefixes have been listed."""

    def __init__(self, api: Api, namespace: str, replica: ReplicaId, clock: Callable[[], datetime]) -> None:
        super().__init__(api, namespace, replica, clock)
        self._lists: dict[Key, asyncio.Event] = {}

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Follow a prefix, and note the first list."""
        listed = self._listed(prefix)

        def hear(changes: Changes) -> None:
            receive(changes)
            listed.set()

        await super().follow(prefix, hear)

    async def listed(self, prefixes: Iterable[Key], seconds: float) -> None:
        """Wait until all prefixes have been listed; raise StateError after this time."""
        for prefix in prefixes:
            try:
                async with asyncio.timeout(seconds):
                    await self._listed(prefix).wait()
            except TimeoutError:
                raise StateError(
                    f"the shared store has not listed the records {prefix} within {seconds:g} s; see the log"
                ) from None

    def _listed(self, prefix: Key) -> asyncio.Event:
        return self._lists.setdefault(prefix, asyncio.Event())


class SharedStore:
    """CA, ledger, service certificates and join tokens that this server shares with others.

    `tokens` are complete when `opened` has returned. News of other servers wait until `works` runs.
    """

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        """Begin the thread of the store; call on the server's event loop. Raises StartupError."""
        self._settings, self._clock = settings, clock
        self._server_loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._entries: deque[tuple[LedgerEntry, ...]] = deque()
        self._holders: deque[frozenset[Holder]] = deque()
        self.replica = replica_id()
        try:
            self._api = Api(find_connection(settings.kubeconfig, settings.kube_context))
        except KubeError as error:
            raise StartupError(" ".join(str(error).split())) from error
        self._records = ListedRecords(self._api, home(os.environ), self.replica, clock)
        self._thread = StoreThread()
        self.tokens = SharedTokens(self._records, self.replica, self._thread.loop)

    async def opened(self, stop: asyncio.Event) -> AuthorityWithLedger | None:
        """Open everything, and return the CA with the ledger after all records were listed once.

        Return `None` if `stop` is set meanwhile, because the store may be slow. Raises StateError.
        """
        opening = asyncio.create_task(asyncio.to_thread(self._open))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((opening, stopping), return_when=FIRST_COMPLETED)
        stopping.cancel()
        if opening.done():
            return await opening
        await asyncio.to_thread(self.close)
        with suppress(StateError, RecordsError, RuntimeError):  # the result is not needed any more
            await opening
        return None

    def _open(self) -> AuthorityWithLedger:
        settings, thread = self._settings, self._thread
        thread.run(self._api.__aenter__())
        passphrase = settings.key_passphrase_file
        stores = SharedStores.open(self._records, self.replica, thread.loop, settings.state, passphrase)
        thread.start("shared ledger", lambda: stores.ledger.follow(self._hear_entries))
        thread.start("shared service certificates", lambda: stores.pairs.follow(self._hear_pairs))
        thread.start("shared join tokens", self.tokens.follow)
        thread.start("look at the shared store", self._looking)
        thread.run(self._records.listed((*LISTED, LISTED_TOKENS), LIST_SECONDS))
        # The stores have these changes already, and the other parts begin with the stores.
        self._entries.clear()
        self._holders.clear()
        domain = TrustDomain(settings.trust_domain)
        return open_shared(stores, settings.state, domain, self._clock(), passphrase)

    def works(
        self,
        heard: Callable[[tuple[LedgerEntry, ...]], None],
        compared: Callable[[Iterable[ServiceIdentity]], None],
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks for the server's event loop.

        `heard` receives the entries that other servers have changed, `compared` the identities for which
        other servers have stored another certificate.
        """
        yield "news of the shared store", self._deliver(heard, compared)
        for name in self._thread.names():
            yield name, self._thread.ended(name)

    def remarks(self) -> tuple[str, ...]:
        """Return remarks for operators while the store cannot be used. May be called from any thread."""
        return self._thread.remarks()

    def close(self) -> None:
        """End all use of the store; later calls of the opened parts fail."""
        with suppress(StoreUnavailableError):  # closed already
            self._thread.run(self._api.__aexit__(None, None, None))
        self._thread.close()

    async def _looking(self) -> None:
        """Read a record again and again, because a watch without answers raises no error."""
        while True:
            try:
                await self._records.read(SEAL)
            except RecordsError as error:
                self._thread.note(_LOOKING, str(error))
            else:
                self._thread.note(_LOOKING, "")
            await asyncio.sleep(LOOK_SECONDS)

    def _hear_entries(self, entries: tuple[LedgerEntry, ...]) -> None:
        self._entries.append(entries)
        self._wake()

    def _hear_pairs(self, holders: frozenset[Holder]) -> None:
        self._holders.append(holders)
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the server's event loop has ended
            self._server_loop.call_soon_threadsafe(self._woken.set)

    async def _deliver(
        self,
        heard: Callable[[tuple[LedgerEntry, ...]], None],
        compared: Callable[[Iterable[ServiceIdentity]], None],
    ) -> None:
        while True:
            while self._entries:
                heard(self._entries.popleft())
            while self._holders:
                compared(map(_identity, sorted(self._holders.popleft())))
            await self._woken.wait()
            self._woken.clear()


def replica_id() -> ReplicaId:
    """Return a new name of this server: the host name with a random part, so a restart has another one."""
    host = re.sub("[^a-z0-9-]", "-", socket.gethostname().lower())[:63].strip("-") or "server"
    return ReplicaId(f"{host}-{secrets.token_hex(4)}")


def _identity(holder: Holder) -> ServiceIdentity:
    _, namespace, account = holder.split("/")
    return ServiceIdentity(Namespace(namespace), ServiceAccountName(account))
