"""Parts of a server that asks and answers the other servers of its mesh."""

import asyncio
import hashlib
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from certs.contract import Authority
from meshwright.admin.readers import MeshReading
from meshwright.admin.replicas.peers import SERVER
from meshwright.admin.replicas.pulse import ServerFacts, decode_server
from meshwright.admin.replicas.views import ReplicaViews, decoded
from meshwright.controller.settings.settings import Settings
from meshwright.controller.sharing.inputs import DifferingInputs, InputDigest
from meshwright.controller.sharing.peers.acts import PeerActs
from meshwright.controller.sharing.peers.address import announced, peer_socket
from meshwright.controller.sharing.peers.client import PeerClient
from meshwright.controller.sharing.peers.door import PeerSubjects, serving_peers
from meshwright.controller.sharing.peers.leader_works import LeaderWorks, ask_progress
from meshwright.controller.sharing.peers.tls import PeerTls
from meshwright.controller.sharing.shared_store import SharedStore
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.problems.problem import Problems
from meshwright.providers.merge import MergedObjects

if TYPE_CHECKING:
    from meshwright.kubernetes.status.other_progress import ObjectProgress

_OWN_SETTINGS: Final = frozenset(
    {
        "config",
        "kube_context",
        "ads_hosts",
        "debug_hosts",
        "driver_addresses",
        "peer_reached_at",
        "log_level",
        "log_format",
        "shared_state",
    }
)
"""Settings that may differ between the servers of one mesh, besides paths and addresses."""


class PeerParts:
    """The port for other servers, the questions to them, and the digest of this server's inputs.

    Made before the server listens. `views` answers pages and the API over all servers.
    """

    def __init__(
        self,
        settings: Settings,
        shared: SharedStore,
        authority: Authority,
        reading: MeshReading,
        read_settings: Callable[[], Settings],
        say: Callable[[Problems], None],
        own_problems: Callable[[], Problems],
        clock: Callable[[], datetime],
    ) -> None:
        """Issue the certificate, and take the port. Raises CertificateError and StartupError."""
        self._domain = TrustDomain(settings.trust_domain)
        self._settings, self._shared, self._clock = settings, shared, clock
        self._read_settings = read_settings
        self._inputs, self._differing = InputDigest(), DifferingInputs(time.monotonic)
        self.tls = PeerTls(authority, shared.replica, clock())
        self.client = PeerClient(shared.membership, self.tls, self._domain)
        self.views = ReplicaViews(
            self.client, shared.membership, reading, self.server, self._differing.seconds, clock
        )
        self.acts = PeerActs(self.client, self.views)
        self.leading = LeaderWorks(self.client, shared.leadership, say, own_problems)

    async def store_ages(self) -> tuple[float | None, ...]:
        """Return the seconds since the last answer of the store, at each other server that answers."""
        fine, _ = decoded(await self.client.ask(SERVER), decode_server)
        return tuple(facts.store_seconds for facts in fine.values())

    async def ask_progress(self) -> "tuple[dict[str, tuple[ObjectProgress, ...]], tuple[str, ...]] | None":
        """Return the progress of changed objects at the other servers, None unless this server leads."""
        if not self._shared.leadership.epoch:
            return None
        # Imported only here, because a mesh without a cluster has no status.
        from meshwright.kubernetes.status.other_progress import UnreadableProgressError, decode_progress

        fine, silent = await ask_progress(self.client)
        result: dict[str, tuple[ObjectProgress, ...]] = {}
        unreadable = list(silent)
        for replica, content in fine.items():
            try:
                result[replica] = decode_progress(content)
            except UnreadableProgressError:
                unreadable.append(replica)
        return result, tuple(unreadable)

    def server(self) -> ServerFacts:
        """Return the facts of this server about itself."""
        return ServerFacts(self._shared.answer_age(), settings_digests(self._read_settings()))

    def works(
        self, merged: Callable[[], MergedObjects]
    ) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of all tasks; `merged` returns the objects that were read."""
        yield "certificate for other servers", self.tls.renewing(self._clock)
        yield from self.leading.works()
        self._shared.membership.follow(self._compare)
        yield "digest of inputs", self._inputs.following(merged, self._announce_inputs)

    def _announce_inputs(self, text: str) -> None:
        self._shared.membership.set_facts(inputs=text)
        self._compare()

    def _compare(self) -> None:
        states = self._shared.membership.states.values()
        self._differing.look(state.inputs for state in states if state is not None and state.is_ready)

    @asynccontextmanager
    async def serving(self, subjects: PeerSubjects) -> AsyncIterator[HostPort | None]:
        """Answer other servers, and ask them, as long as the context lasts. Raises StartupError."""
        listening = peer_socket(self._settings)
        if listening is None:
            yield None
            return
        host, port = listening.getsockname()[:2]
        at = announced(HostPort(host, port), self._settings.peer_reached_at, os.environ, socket.gethostname())
        membership = self._shared.membership
        async with self.client.opened(), serving_peers(subjects, self._domain, listening, self.tls):
            membership.set_facts(peer_address=str(at))
            try:
                yield HostPort(host, port)
            finally:
                membership.set_facts(peer_address="")


def settings_digests(settings: Settings) -> dict[str, str]:
    """Return a digest of the value of each setting that must be the same at all servers of a mesh.

    Paths and addresses belong to a machine, so they are left out. For example, `trust_domain` has a digest,
    and `state` has none.
    """
    dumped = settings.model_dump(mode="json")
    names = (
        name
        for name in dumped
        if name not in _OWN_SETTINGS and not isinstance(getattr(settings, name), Path | HostPort)
    )
    return {
        name: hashlib.sha256(json.dumps(dumped[name], sort_keys=True).encode()).hexdigest()[:8]
        for name in sorted(names)
    }


async def revoked_within(
    revoke: Callable[[], object], is_in_force: Callable[[], bool], seconds: float
) -> bool:
    """Begin a revocation in a thread, and return whether it is in force after at most this time.

    A revocation is in force before it is written, and the write may wait for a store that is away.
    """
    task = asyncio.ensure_future(asyncio.to_thread(revoke))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait((task,), timeout=seconds)
    return is_in_force()
