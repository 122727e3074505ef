"""Records in the data of one Secret: reads, compared writes and a feed."""

import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from meshwright.kube.api import Api
from meshwright.kube.builtin import SECRETS
from meshwright.kube.errors import ApiError, KubeError, Reason
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key as ObjectKey
from meshwright.kube.resource import Raw
from meshwright.records.contract import (
    Changes,
    Record,
    RecordsError,
    Revision,
    WriteConflictError,
    require_size,
)
from meshwright.records.key import Key, is_within
from meshwright.records.kubernetes.calls import answered
from meshwright.records.kubernetes.feed import FeedNews
from meshwright.records.kubernetes.refusals import failure, is_conflict, is_missing_object
from meshwright.records.kubernetes.secret_data import new_secret, patch_of_secret, records_in
from meshwright.records.kubernetes.times import Times

ATTEMPTS: Final = 20
"""Limit of attempts of one write: each lost one is a write of another record of the Secret."""


class SecretRecords:
    """The records in one Secret, with the reads, writes and feeds of `meshwright.records.contract`.

    The Secret itself is never deleted, because it may have data of others. A missing Secret has no records;
    the first write creates it, if the server's role permits that.
    """

    def __init__(
        self, api: Api, namespace: str, name: str, clock: Callable[[], datetime], times: Times
    ) -> None:
        self._api, self._namespace, self._name = api, namespace, name
        self._clock, self._times = clock, times

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key, or None."""
        async with answered(self._api, self._times.read):
            raw = await self._secret()
        return None if raw is None else records_in(raw).get(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Replace the record with revision `before`, or create one."""
        require_size(key, content)
        raw = await self._changed(key, content, before)
        return records_in(raw)[key]

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record with revision `before`; the Secret stays."""
        await self._changed(key, None, before)

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Call `receive` with all records within a prefix, then with each change, until cancelled."""
        reflector = Reflector(
            self._api,
            SECRETS,
            records_in,
            self._clock,
            namespace=self._namespace,
            fields=f"metadata.name={self._name}",
            pacing=self._times.pacing,
        )
        await reflector.run(_SecretFeed(prefix, receive, reflector).take)

    async def _changed(self, key: Key, content: bytes | None, before: Revision | None) -> Raw:
        """Replace or remove one record, and return the Secret; raise WriteConflictError.

        The patch is compared with the resourceVersion of a read, so a write of another record in between is
        no conflict for the caller: the Secret is read again.
        """
        write = secrets.token_hex(8)
        async with answered(self._api, self._times.write):
            for _ in range(ATTEMPTS):
                raw = await self._secret()
                current = None if raw is None else records_in(raw).get(key)
                if (None if current is None else current.revision) != before:
                    raise WriteConflictError(key, current)
                try:
                    return await self._patched(raw, key, content, write)
                except KubeError as error:
                    if not is_conflict(error):
                        raise self._failure(error, is_missing=raw is None) from error
        raise RecordsError(f"the Secret {self._place} was changed by others {ATTEMPTS} times in a row")

    async def _patched(self, raw: Raw | None, key: Key, content: bytes | None, write: str) -> Raw:
        if raw is not None:
            patch = patch_of_secret(raw, key, content, write)
            return await self._api.patch(SECRETS, self._namespace, self._name, patch)
        assert content is not None  # noqa: S101 - a missing record is a conflict for a removal
        body = new_secret(self._name, key, content, write)
        return await self._api.create(SECRETS, self._namespace, body)

    async def _secret(self) -> Raw | None:
        """Return the Secret as it is now, or None for a missing one."""
        try:
            return await self._api.get(SECRETS, self._namespace, self._name)
        except KubeError as error:
            if is_missing_object(error):
                return None
            raise failure(error) from error

    def _failure(self, error: KubeError, *, is_missing: bool) -> RecordsError:
        if is_missing and isinstance(error, ApiError) and error.reason is Reason.FORBIDDEN:
            return RecordsError(
                f"the Secret {self._place} is missing, and this server may not create it: apply "
                "docs/kubernetes/shared-store.yaml, or run `kubectl create secret generic "
                f"{self._name} --namespace {self._namespace}`"
            )
        return failure(error)

    @property
    def _place(self) -> str:
        return f"{self._namespace}/{self._name}"


class _SecretFeed:
    """Calls of a receiver: one for the first list, also if it is empty, and one for each change."""

    def __init__(
        self,
        prefix: Key,
        receive: Callable[[Changes], None],
        reflector: Reflector[dict[Key, Record]],
    ) -> None:
        self._prefix, self._receive, self._reflector = prefix, receive, reflector
        self._news = FeedNews(prefix, reflector)
        self._known: dict[Key, Record] = {}
        self._is_first = True

    def take(self, changes: Mapping[ObjectKey, Item[dict[Key, Record]] | None]) -> None:
        """Deliver the difference of the records; a reflector also calls with {} for news of an error."""
        self._news.log()
        if not self._reflector.listed.is_set():
            return
        known = self._known
        for item in changes.values():
            known = {} if item is None else self._within(item.body)
        records = tuple(record for key, record in sorted(known.items()) if self._known.get(key) != record)
        removed = tuple(sorted(self._known.keys() - known.keys()))
        self._known = known
        if records or removed or self._is_first:
            self._is_first = False
            self._receive(Changes(records, removed))

    def _within(self, records: Mapping[Key, Record]) -> dict[Key, Record]:
        return {key: record for key, record in records.items() if is_within(key, self._prefix)}
