"""The names of the gateway Secrets that the mesh has written, in a record that several servers share.

For example, the Secret `gateway` in the namespace `mesh`:

    {"secrets": [["mesh", "gateway"]]}
"""

import asyncio
from typing import Final

import structlog

from meshwright.mesh.names import Namespace, SecretName
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.contract import Epoch, RecordsError, RecordStore, ReplicaId
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Version, Writer, fenced, update
from meshwright.transfer.store_state import GATEWAY

_SECRETS: Final = "secrets"
_NOT_DELETED: Final = "Secrets of former gateways are not deleted"

_log = structlog.get_logger("controller.sharing")


class RecordedGatewaySecrets:
    """The names, as `meshwright.controller.state_files.PersistentValue`; only the leader writes them.

    All methods wait for the store, so they are for threads.
    """

    def __init__(self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._replica = replica
        self._calls = ThreadCalls(loop)
        self._writer = Writer(replica)

    def lead(self, epoch: Epoch) -> None:
        """Begin a term: writes of former leaders are refused from now on. An error is logged."""
        try:
            self._writer = self._calls.run(fenced(self._store, GATEWAY, self._replica, epoch))
        except (RecordsError, UnreadableContentError) as error:
            self._writer = Writer(self._replica, epoch)
            _log.error(_NOT_DELETED, reason=str(error))

    def load(self) -> frozenset[SecretName]:
        """Return the names; empty without a readable record, which is logged, and before the first term."""
        if not self._writer.epoch:
            return frozenset()
        try:
            content = Version.of(self._calls.run(self._store.read(GATEWAY))).content
            return frozenset() if content is None else _names(content.fields)
        except (RecordsError, UnreadableContentError) as error:
            _log.error(_NOT_DELETED, reason=str(error))
            return frozenset()

    def keep(self, value: frozenset[SecretName]) -> None:
        """Replace the names. An error is logged, and not raised."""
        names = [[secret.namespace, secret.name] for secret in sorted(value)]

        def change(fields: Fields | None) -> Fields | None:
            there = {} if fields is None else fields
            return None if there.get(_SECRETS) == names else {**there, _SECRETS: names}

        try:
            self._calls.run(update(self._store, GATEWAY, change, self._writer))
        except (RecordsError, UnreadableContentError) as error:
            _log.error("the list of gateway Secrets cannot be saved", reason=str(error))


def _names(fields: Fields) -> frozenset[SecretName]:
    value = fields.get(_SECRETS, [])
    try:
        return frozenset(SecretName(Namespace(str(space)), str(name)) for space, name in value)  # type: ignore[attr-defined] # checked by the errors
    except (TypeError, ValueError):
        raise UnreadableContentError("secrets: expected a list of pairs") from None
