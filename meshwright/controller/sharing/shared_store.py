"""The shared store of one server: opened before all other parts, and followed as long as the server runs."""

import asyncio
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

from certs.custody import AuthorityWithLedger
from certs.errors import StateError
from certs.ledger.entry import LedgerEntry
from certs.shared_records.custody import LISTED, SEAL, SharedStores, has_own_mesh, open_shared
from certs.shared_records.domains import HEADER
from meshwright.controller.process.disk_space import StorePlace
from meshwright.controller.settings.settings import Settings
from meshwright.controller.sharing.gateway_record import RecordedGatewaySecrets
from meshwright.controller.sharing.issuer_servers import IssuerServers
from meshwright.controller.sharing.migration.unmoved_state import until_moved
from meshwright.controller.sharing.record_forms import RecordForms
from meshwright.controller.sharing.record_pruning import HasWorkload, PrunableLedger, RecordPruning
from meshwright.controller.sharing.rejections.shared_rejections import SharedRejections
from meshwright.controller.sharing.root_servers import RootServers
from meshwright.controller.sharing.shared_tokens import LISTED_TOKENS, SharedTokens
from meshwright.controller.sharing.store.backends import backend, replica_id
from meshwright.controller.sharing.store.domains import DOMAINS, IDENTITY
from meshwright.controller.sharing.store.first_answer import wait_for_store
from meshwright.controller.sharing.store.followed_file import FollowedFile
from meshwright.controller.sharing.store.listed_records import ListedRecords
from meshwright.controller.sharing.store.server_loop import ServerLoop
from meshwright.controller.sharing.store.server_presence import ServerPresence
from meshwright.controller.sharing.store.store_news import StoreNews
from meshwright.controller.sharing.store.store_thread import StoreThread
from meshwright.controller.sharing.store.waiting_probes import waiting_probes
from meshwright.controller.sharing.stream_balance import StreamBalance
from meshwright.controller.state_files import VERDICTS, StateFile
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import TrustDomain
from meshwright.records.contract import Changes, RecordsError
from meshwright.records.recovery.store import HealedRecords
from meshwright.replicas.departures import Departures
from meshwright.replicas.turns import turn
from meshwright.sidecars.contract.contexts import MovableStreams

LIST_SECONDS: Final = 60.0
"""Longest time in seconds until the first lists of the store; then the start fails."""

LOOK_SECONDS: Final = 5.0
"""Seconds between two reads by which a server notices that the store is away."""

_LOOKING: Final = "shared store"


class SharedStore:
    """CA, ledger, service certificates and join tokens that this server shares with others.

    `tokens` and `rejections` are complete when `opened` has returned. News of other servers wait until
    `works` runs.
    """

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        """Begin the thread of the store; call on the server's event loop. Raises StartupError."""
        self._settings, self._clock = settings, clock
        self._server_loop = ServerLoop()
        self._news = StoreNews(self._server_loop)
        self._answered_at: float | None = None
        self.replica = replica_id()
        self._backend = backend(settings, self.replica, clock)
        self._followed = FollowedFile(settings.state)
        self._healed = HealedRecords(
            self._backend.records, self.replica, DOMAINS, IDENTITY, clock, self._followed
        )
        self._records = ListedRecords(self._healed)
        self._thread = StoreThread()
        self._presence = ServerPresence(self._records, self.replica, clock, self._server_loop)
        self.membership, self.leadership = self._presence.membership, self._presence.leadership
        self._forms = RecordForms(
            self._records, self.replica, self._thread.loop, self.membership, self.leadership
        )
        self._ledger: PrunableLedger | None = None
        # The file is only for verdicts that the store has not taken yet.
        verdicts = StateFile(settings.state, VERDICTS)
        self.rejections = SharedRejections(
            self._records, self.replica, self._thread.loop, verdicts, self._server_loop
        )
        self.tokens = SharedTokens(self._records, self.replica, self._thread.loop)
        self.gateway_secrets = RecordedGatewaySecrets(self._records, self.replica, self._thread.loop)
        self._departures = Departures(self.membership)
        self._roots: RootServers | None = None
        self._issuer_servers: IssuerServers | None = None

    @property
    def roots(self) -> RootServers:
        """Return the other servers in a change of the root; only after `opened`."""
        assert self._roots is not None  # noqa: S101 - the order of the start
        return self._roots

    @property
    def issuer_servers(self) -> IssuerServers:
        """Return the other servers in a change of the issuer; only after `opened`."""
        assert self._issuer_servers is not None  # noqa: S101 - the order of the start
        return self._issuer_servers

    async def opened(self, stop: asyncio.Event) -> AuthorityWithLedger | None:
        """Open everything, and return the CA with the ledger after all records were listed once.

        Return `None` if `stop` is set meanwhile, because the store may be slow. Raises StateError.
        """
        async with waiting_probes(self._settings.http_address):
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
        thread.run(self._backend.connection.__aenter__())
        wait_for_store(thread, self._healed)
        self._forms.require()
        passphrase = settings.key_passphrase_file
        if has_own_mesh(settings.state):
            self._move()
        thread.run(until_moved(self._records, self._backend.unmoved))
        stores = SharedStores.open(self._records, self.replica, thread.loop, settings.state, passphrase)
        self._ledger = stores.ledger
        thread.start("shared ledger", lambda: stores.ledger.follow(self._news.hear_entries))
        thread.start("shared service certificates", lambda: stores.pairs.follow(self._news.hear_pairs))
        thread.start("shared join tokens", self.tokens.follow)
        thread.start("shared names of gateway Secrets", self.gateway_secrets.follow)
        thread.start("form of the shared records", self._forms.follow)
        thread.start("shared data key", partial(self._records.follow, SEAL, _ignore))
        thread.start("healing of the shared store", self._healed.heal)
        thread.start("followed records", self._healed.keep)
        thread.start("look at the shared store", self._looking)
        thread.start("presence among the servers", self._presence.announce)
        self._roots = RootServers(
            stores.authority,
            stores.ledger.issued,
            stores.reports,
            self.membership,
            self.leadership,
            self._departures,
        )
        self._roots.start(thread, self._server_loop.call)
        self._issuer_servers = IssuerServers(
            stores.sidecars, self.membership, self.leadership, self._departures
        )
        self._issuer_servers.start(thread)
        thread.run(self._records.listed((*LISTED, LISTED_TOKENS), LIST_SECONDS))
        # Before the authority is read: the leader of a root change then waits for this server too.
        self._presence.wait_until_announced(
            LIST_SECONDS, lambda: self._healed.has_answered, lambda: self._thread.is_closed
        )
        self._news.drop()
        domain = TrustDomain(settings.trust_domain)
        return open_shared(stores, settings.state, domain, self._clock(), passphrase)

    def _move(self) -> None:
        """Move the mesh of the state directory into the store. Raises StateError."""
        # Imported only here, because few starts need them.
        from meshwright.controller.sharing.migration.move import move
        from meshwright.transfer.mesh_store import MeshStore

        settings = self._settings
        # Without the wrapper, which would take the lists of the move for those of this server.
        store = MeshStore(
            self._backend.records, self.replica, self._thread, settings.state, settings.key_passphrase_file
        )
        move(settings, store, self._clock)

    def works(
        self,
        heard: Callable[[tuple[LedgerEntry, ...]], None],
        compared: Callable[[Iterable[ServiceIdentity]], None],
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks for the server's event loop.

        `heard` receives the entries that other servers have changed, `compared` the identities for which
        other servers have stored another certificate.
        """
        self._thread.start("leadership among the servers", self._presence.lead)
        yield "news of the shared store", self._news.deliver(heard, compared)
        yield from self._forms.works()
        for name in self._thread.names():
            yield name, self._thread.ended(name)

    def balance(
        self,
        streams: Callable[[], Iterable[MovableStreams]],
        missing: Callable[[], Iterable[str]],
        is_stopping: Callable[[], bool],
        moved: Callable[[int], None],
    ) -> StreamBalance:
        """Return the balance of this server's streams with those of the other servers."""
        return StreamBalance(
            self.membership,
            streams,
            missing,
            is_stopping=is_stopping,
            is_store_away=lambda: bool(self._thread.remarks()),
            moved=moved,
        )

    async def prune(self, workloads: Callable[[], HasWorkload | None], *, keeps_revoked: bool) -> None:
        """Forget old proxy certificates whenever this server leads, until cancelled; see RecordPruning."""
        if self._ledger is None:
            raise StateError("the shared store is not open")
        pruning = RecordPruning(self._ledger, workloads, self._clock, keeps_revoked=keeps_revoked)
        await self.leadership.lead(pruning.run)

    def turn(self, identity: ServiceIdentity) -> int:
        """Return the turn of this server to renew a service's certificate, from 0, among those that are here.

        May be called from any thread.
        """
        return turn(str(identity), self.replica, self.membership.states)

    @property
    def place(self) -> StorePlace:
        """Return the store in words, for operators."""
        return self._backend.place

    def remarks(self) -> tuple[str, ...]:
        """Return remarks for operators while the store cannot be used. May be called from any thread."""
        return (*self._thread.remarks(), *self._healed.remarks())

    def answer_age(self) -> float | None:
        """Return the seconds since the last answer of the store, None before the first one."""
        at = self._answered_at
        return None if at is None else time.monotonic() - at

    def close(self) -> None:
        """End all use of the store; later calls of the opened parts fail."""
        self._thread.close(self._end)
        self._followed.close()

    async def _end(self) -> None:
        """Keep what was followed, and end the connection."""
        await self._healed.keep_now()
        await self._backend.connection.__aexit__(None, None, None)

    async def _looking(self) -> None:
        """Read a record again and again, because a watch without answers raises no error."""
        while True:
            try:
                await self._backend.records.read(HEADER)  # never a kept one
            except RecordsError as error:
                self._thread.note(_LOOKING, str(error))
            else:
                self._answered_at = time.monotonic()
                self._thread.note(_LOOKING, "")
            self._server_loop.call(self._announce_counts, self._healed.counts())
            await asyncio.sleep(LOOK_SECONDS)

    def _announce_counts(self, counts: Mapping[str, int]) -> None:
        self.membership.set_facts(records=dict(sorted(counts.items())))


def _ignore(changes: Changes) -> None:
    """Ignore changes of records that are followed to heal and to keep them."""
    del changes
