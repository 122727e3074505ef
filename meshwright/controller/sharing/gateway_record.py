"""The names of the gateway Secrets that the mesh has written, in a record that several servers share.

For example, the Secret `gateway` in the namespace `mesh`:

    {"secrets": [["mesh", "gateway"]]}
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import structlog

from meshwright.mesh.names import Namespace, SecretName
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import Changes, Epoch, Record, RecordsError, RecordStore, ReplicaId
from meshwright.records.key import Key
from meshwright.records.recovery.domain import Domain
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Version, Writer, fenced, update
from meshwright.transfer.store_state import GATEWAY

_SECRETS: Final = "secrets"
_NOT_DELETED: Final = "Secrets of former gateways are not deleted"

_log = structlog.get_logger("controller.sharing")


def mend_gateway(key: Key, known: Content, present: Content | None, now: datetime) -> Fields | None:
    """Return the fields that the record must have, or None if nothing is lost; see `Mend`.

    A lost record has all names of both contents. A name too many does no harm: a Secret that is gone, or not
    one of ours, is left alone.
    """
    del key, now
    if present is None:
        return known.fields
    if present.count > known.count:
        return None
    names = _names(known.fields) | _names(present.fields)
    fields = {**known.fields, **present.fields, _SECRETS: _as_lists(names)}
    return None if fields == present.fields else fields


GATEWAY_DOMAIN: Final = Domain(GATEWAY, mend_gateway)
"""The record with the names, which never vanishes."""


class RecordedGatewaySecrets:
    """The names, as `meshwright.controller.state_files.PersistentValue`; only the leader writes them.

    All methods but `follow` wait for the store, so they are for threads.
    """

    def __init__(self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._replica = replica
        self._calls = ThreadCalls(loop)
        self._writer = Writer(replica)
        self._followed: Record | None = None

    async def follow(self) -> None:
        """Follow the record on the event loop of the store, until cancelled, so that a loss is noticed."""

        def hear(changes: Changes) -> None:
            self._followed = next(iter(changes.records), None)

        await self._store.follow(GATEWAY, hear)

    def lead(self, epoch: Epoch) -> None:
        """Begin a term: writes of former leaders are refused from now on. An error is logged."""
        try:
            self._writer = self._calls.run(fenced(self._store, GATEWAY, self._replica, epoch))
        except (RecordsError, UnreadableContentError) as error:
            self._writer = Writer(self._replica, epoch)
            _log.error(_NOT_DELETED, reason=str(error))

    def load(self) -> frozenset[SecretName]:
        """Return the names; empty without a readable record, which is logged, and before the first term.

        The followed names count too, because the store may have lost the record a moment ago.
        """
        if not self._writer.epoch:
            return frozenset()
        try:
            records = (self._calls.run(self._store.read(GATEWAY)), self._followed)
            contents = (Version.of(record).content for record in records)
            names = (_names(content.fields) for content in contents if content is not None)
            return frozenset[SecretName]().union(*names)
        except (RecordsError, UnreadableContentError) as error:
            _log.error(_NOT_DELETED, reason=str(error))
            return frozenset()

    def keep(self, value: frozenset[SecretName]) -> None:
        """Replace the names. An error is logged, and not raised."""
        names = _as_lists(value)

        def change(fields: Fields | None) -> Fields | None:
            there = {} if fields is None else fields
            return None if there.get(_SECRETS) == names else {**there, _SECRETS: names}

        try:
            self._calls.run(update(self._store, GATEWAY, change, self._writer))
        except (RecordsError, UnreadableContentError) as error:
            _log.error("the list of gateway Secrets cannot be saved", reason=str(error))


def _as_lists(names: Iterable[SecretName]) -> list[list[str]]:
    return [[secret.namespace, secret.name] for secret in sorted(names)]


def _names(fields: Fields) -> frozenset[SecretName]:
    value = fields.get(_SECRETS, [])
    try:
        return frozenset(SecretName(Namespace(str(space)), str(name)) for space, name in value)  # type: ignore[attr-defined] # checked by the errors
    except (TypeError, ValueError):
        raise UnreadableContentError("secrets: expected a list of pairs") from None
