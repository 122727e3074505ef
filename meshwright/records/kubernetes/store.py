"""Store of records in a Kubernetes API, for one replica."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from meshwright.kube.api import Api
from meshwright.kube.errors import KubeError
from meshwright.kube.lease import Lease
from meshwright.kube.reflector.reflector import Reflector
from meshwright.records.contract import (
    Changes,
    Epoch,
    Knowledge,
    Record,
    RecordsError,
    ReplicaId,
    Revision,
    WriteConflictError,
    require_size,
)
from meshwright.records.key import Key
from meshwright.records.kubernetes.calls import answered
from meshwright.records.kubernetes.definition import RECORDS
from meshwright.records.kubernetes.feed import CachedRecord, Feed
from meshwright.records.kubernetes.objects import name_of, object_of, patch_of, record_of, selector_of
from meshwright.records.kubernetes.presence import REPLICAS, Presence, key_of_replica, presence_content
from meshwright.records.kubernetes.refusals import failure, is_conflict, is_missing_object
from meshwright.records.kubernetes.secret import SecretRecords
from meshwright.records.kubernetes.times import TIMES, Times

LEASE: Final = "meshwright-leader"
"""Name of the Lease of the leader."""

CUSTODY: Final = "meshwright-custody"
"""Name of the Secret with the secret records."""

_log = structlog.get_logger("records.kubernetes")


def in_no_secret(key: Key) -> bool:
    """Return False: every record is an object of its own."""
    del key
    return False


class KubernetesRecords:
    """Client of one replica; implements `meshwright.records.contract.RecordStore`.

    `namespace` is the control plane's own. `clock` returns the time with a zone, for the Lease. `in_secret`
    says which records are data of the Secret `meshwright-custody`; for a prefix it says where all records
    within are. All others are objects of the kind Record.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        replica: ReplicaId,
        clock: Callable[[], datetime],
        times: Times = TIMES,
        in_secret: Callable[[Key], bool] = in_no_secret,
    ) -> None:
        self._api, self._namespace, self._replica = api, namespace, replica
        self._clock, self._times = clock, times
        self._in_secret = in_secret
        self._secret = SecretRecords(api, namespace, CUSTODY, clock, times)

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key, or None.

        Without a resourceVersion in the request, the API server asks etcd for the newest object.
        """
        if self._in_secret(key):
            return await self._secret.read(key)
        try:
            async with answered(self._api, self._times.read):
                raw = await self._api.get(RECORDS, self._namespace, name_of(key))
        except KubeError as error:
            if is_missing_object(error):
                return None
            raise failure(error) from error
        return record_of(raw)

    def last_known(self, key: Key) -> Knowledge | None:
        """Return None: this client keeps no records."""
        del key
        return None

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Replace the record with revision `before`, or create one.

        The HTTP client repeats a PUT whose connection broke, and the answer to the second one would be a
        conflict with the caller's own write. POST and PATCH are never repeated.
        """
        if self._in_secret(key):
            return await self._secret.write(key, content, before)
        require_size(key, content)
        write = secrets.token_hex(4)
        async with self._compared(key):
            if before is None:
                raw = await self._api.create(RECORDS, self._namespace, object_of(key, content, write))
            else:
                patch = patch_of(content, before, write)
                raw = await self._api.patch(RECORDS, self._namespace, name_of(key), patch)
        return record_of(raw)

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record with revision `before`.

        A removal repeated by the HTTP client may raise WriteConflictError without a present record,
        although the first request removed the record.
        """
        if self._in_secret(key):
            await self._secret.remove(key, before)
            return
        async with self._compared(key):
            await self._api.delete(RECORDS, self._namespace, name_of(key), version=before)

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Call `receive` with all records within a prefix, then with each change, until cancelled."""
        if self._in_secret(prefix):
            await self._secret.follow(prefix, receive)
        reflector = Reflector(
            self._api,
            RECORDS,
            CachedRecord,
            self._clock,
            namespace=self._namespace,
            labels=selector_of(prefix),
            pacing=self._times.pacing,
        )
        await reflector.run(Feed(prefix, receive, reflector).take)

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Show this replica to the others until cancelled, and call `receive` with all replicas."""
        presence = Presence(self._replica)

        def take(changes: Changes) -> None:
            if (here := presence.take(changes)) is not None:
                receive(here)

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.follow(REPLICAS, take), name="presence of replicas")
                group.create_task(self._renew(state, presence), name="own presence")
        finally:
            await self._withdraw()

    async def _renew(self, state: Callable[[], bytes], presence: Presence) -> None:
        """Write the own record again and again, and remove records of replicas without renewals."""
        key, count, error_text = key_of_replica(self._replica), 0, ""
        before: Revision | None = None
        while True:
            count += 1
            try:
                content = presence_content(self._replica, state(), count)
                before = (await self.write(key, content, before)).revision
                error_text = ""
            except WriteConflictError as conflict:
                # The unanswered write before was done, or others found this replica gone.
                before = None if conflict.current is None else conflict.current.revision
                await asyncio.sleep(self._times.renew / 10)
                continue
            except RecordsError as error:
                if (text := str(error)) != error_text:
                    _log.warning("presence cannot be renewed", replica=self._replica, error=text)
                error_text = text
            for forgotten, revision in presence.forgotten():
                with contextlib.suppress(RecordsError):  # another replica may be faster, or the next turn
                    await self.remove(forgotten, revision)
            await asyncio.sleep(self._times.renew)

    async def _withdraw(self) -> None:
        """Remove the own record; without an answer others notice the end by the missing renewals."""
        key = key_of_replica(self._replica)
        try:
            async with asyncio.timeout(self._times.read):
                if (record := await self.read(key)) is not None:
                    await self.remove(key, record.revision)
        except (RecordsError, TimeoutError) as error:
            _log.warning("presence cannot be removed", replica=self._replica, error=str(error))

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Run `work` whenever this replica leads, until cancelled."""
        lease = Lease(self._api, self._namespace, LEASE, self._replica, self._clock, terms=self._times.lease)
        await lease.run(partial(self._term, lease, work))

    async def _term(self, lease: Lease, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        try:
            await work(Epoch(lease.term))
        except Exception:  # noqa: BLE001 - the next term begins all the same
            _log.exception("the work of a leader failed", replica=self._replica)

    @contextlib.asynccontextmanager
    async def _compared(self, key: Key) -> AsyncIterator[None]:
        """Raise the store's error for a failed write or removal in the block."""
        try:
            async with answered(self._api, self._times.write):
                yield
        except KubeError as error:
            if is_conflict(error):
                raise WriteConflictError(key, await self.read(key)) from error
            raise failure(error) from error
