"""The objects in etcd for commands: listed, and written or deleted by compared changes."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from meshwright.cli.errors import CommandFailed
from meshwright.cli.objects.inputs import Input
from meshwright.cli.objects.judgement import Verdict, judged
from meshwright.cli.objects.settings import EtcdSettings
from meshwright.controller.errors import StartupError
from meshwright.controller.sharing.store.etcd_connection import etcd_client
from meshwright.etcd.client import Client, Swap
from meshwright.etcd.errors import EtcdError, UnavailableError
from meshwright.etcd.values import KeyValue, Span
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.etcd.names import ObjectNames

T = TypeVar("T")

ATTEMPTS: Final = 5
"""Attempts of one change while other writers change the same object."""

_PAGE: Final = 500


class Change(StrEnum):
    """Results of a command for one object, in the words of kubectl."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    MISSING = "not found"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The change of one object, and the verdict on its manifest."""

    change: Change
    verdict: Verdict


class ObjectStore:
    """The objects of one mesh in etcd. All methods raise EtcdError."""

    def __init__(self, client: Client, names: ObjectNames) -> None:
        self._client, self.names = client, names

    async def all(self) -> tuple[KeyValue, ...]:
        """Return all keys with objects, at one revision."""
        span, revision, items = self.names.span, 0, list[KeyValue]()
        while True:
            page = await self._client.page(span, revision, _PAGE)
            items += page.items
            if not page.more:
                return tuple(items)
            # The next page at the same revision, so that no write between two pages is seen by half.
            revision = page.position.revision
            span = Span(page.items[-1].key + b"\0", span.end)

    async def apply(self, given: Input, *, dry_run: bool) -> Outcome:
        """Judge a manifest, and write it in the place of the one that was judged with it.

        After a change by another writer, and after an answer that was lost, judge it again.
        """
        verdict = judged(given, None)
        if verdict.key is None:
            return Outcome(Change.REFUSED, verdict)
        name = self.names.name_of(verdict.key)
        for _ in range(ATTEMPTS):
            current = await self._client.get(name)
            verdict = judged(given, None if current is None else current.value)
            if verdict.refused:
                return Outcome(Change.REFUSED, verdict)
            # Not written again, so that the servers do not read it again.
            if current is not None and current.value == given.content:
                return Outcome(Change.UNCHANGED, verdict)
            change = Change.CREATED if current is None else Change.CONFIGURED
            if dry_run:
                return Outcome(change, verdict)
            modified = 0 if current is None else current.modified
            if await _is_done(self._client.swap(name, given.content, modified), self._has(name, given)):
                return Outcome(change, verdict)
        raise UnavailableError(f"{verdict.key} is changed by other writers all the time: try again")

    async def delete(self, key: ObjectKey, *, dry_run: bool) -> Change:
        """Delete an object as it is now."""
        name = self.names.name_of(key)
        for _ in range(ATTEMPTS):
            current = await self._client.get(name)
            if current is None:
                return Change.MISSING
            if dry_run or await _is_done(self._client.delete(name, current.modified), self._is_gone(name)):
                return Change.DELETED
        raise UnavailableError(f"{key} is changed by other writers all the time: try again")

    def _has(self, name: bytes, given: Input) -> Callable[[], Coroutine[Any, Any, bool]]:
        async def has() -> bool:
            current = await self._client.get(name)
            return current is not None and current.value == given.content

        return has

    def _is_gone(self, name: bytes) -> Callable[[], Coroutine[Any, Any, bool]]:
        async def is_gone() -> bool:
            return await self._client.get(name) is None

        return is_gone


async def _is_done(change: Coroutine[Any, Any, Swap], is_so: Callable[[], Coroutine[Any, Any, bool]]) -> bool:
    """Return whether a compared change was done; after a lost answer look whether it was."""
    try:
        return (await change).is_done
    except UnavailableError as error:
        if error.is_undone or not await is_so():
            raise
        return True


def run(settings: EtcdSettings, work: Callable[[ObjectStore], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine with the objects in etcd; raise CommandFailed for an error of etcd."""

    async def connected() -> T:
        # On this event loop, to which gRPC binds the connections.
        async with etcd_client(settings) as client:
            return await work(ObjectStore(client, ObjectNames(settings.trust_domain)))

    try:
        return asyncio.run(connected())
    except (EtcdError, StartupError) as error:
        raise CommandFailed(error) from error


def replaced(
    items: Iterable[KeyValue], names: ObjectNames, writes: Iterable[tuple[ObjectKey, bytes | None]]
) -> tuple[KeyValue, ...]:
    """Return the keys as they would be after writes, `None` for a deletion."""
    result = {item.key: item for item in items}
    # New keys are younger than all others, as they would be in etcd.
    newest = max((item.modified for item in result.values()), default=0)
    for number, (key, content) in enumerate(writes, newest + 1):
        name = names.name_of(key)
        before = result.pop(name, None)
        if content is not None:
            result[name] = KeyValue(name, content, before.created if before else number, number)
    return tuple(result.values())
