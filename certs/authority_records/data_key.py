"""The record `seal`, with the data key that encrypts private keys in all shared records.

The first server makes the data key, and the others take it. Without a passphrase the record has it as it is:
who may read the record can read all private keys of the mesh. In Kubernetes it therefore belongs into a
Secret. With a passphrase it is encrypted as in the file `seal.json` of a state directory.

    {"data_key": "5f2c...", "mesh": "07d1..."}
    {"wrapped": {"kdf": "scrypt", "n": 32768, ..., "data_key": "9ab0..."}, "mesh": "07d1..."}

`mesh` identifies the data key, and so the mesh.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Final

import structlog

from certs.authority_records.fields import AUTHORITY
from certs.errors import StateError
from certs.state.sealing import RecordSeal, new_data_key, read_wrapped, wrapped
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import RecordsError, RecordStore, ReplicaId
from meshwright.records.key import key_of
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Writer, update

SEAL: Final = key_of("seal")
"""Key of the record."""

_KEY: Final = "data_key"
_WRAPPED: Final = "wrapped"
_MESH: Final = "mesh"
_DATA_KEY_BYTES: Final = 32
_MEND: Final = (
    f"restore the record {SEAL} from a backup, because the private keys in the shared records cannot be "
    "decrypted without it"
)

_log = structlog.get_logger("certs.authority_records")


def _accept() -> None:
    """Accept every mesh as new."""


class RecordedDataKey:
    """The shared data key, as one server opens it.

    `passphrase` is None without one, and `least_count` as in `meshwright.records.update.Writer`. The methods
    wait for the store, so they are for threads.
    """

    def __init__(
        self,
        store: RecordStore,
        replica: ReplicaId,
        loop: asyncio.AbstractEventLoop,
        passphrase: bytes | None,
        least_count: int = 1,
    ) -> None:
        self._store = store
        self._writer = Writer(replica, least_count=least_count)
        self._calls = ThreadCalls(loop)
        self._passphrase = passphrase

    def open(self, require_new: Callable[[], None] = _accept) -> RecordSeal:
        """Return the seal of all shared records; see `read_or_make`."""
        return RecordSeal(self.read_or_make(require_new))

    def read_or_make(
        self, require_new: Callable[[], None] = _accept, made: Callable[[], bytes] = new_data_key
    ) -> bytes:
        """Return the data key of all shared records. At the first start, store the one that `made` returns.

        `require_new` is called before that, and raises StateError if the mesh is not new. With a passphrase,
        encrypt a data key that was stored without one. Raises StateError for a wrong or missing passphrase, a
        damaged record, and one that is missing although there are encrypted keys.
        """
        try:
            # The authority before the seal, because the first server writes them in the other order.
            has_keys = self._calls.run(self._store.read(AUTHORITY)) is not None
            fields = self._read()
            if fields is None:
                if has_keys:
                    raise StateError(f"the record {SEAL} is missing; {_MEND}")
                fields = self._made(require_new, made)
            if _WRAPPED not in fields and self._passphrase is not None:
                fields = self._encrypted(fields)
        except (RecordsError, UnreadableContentError) as error:
            raise StateError(f"the shared data key cannot be used: {error}") from error
        return self._data_key(fields)

    def _made(self, require_new: Callable[[], None], made: Callable[[], bytes]) -> Fields:
        """Make the data key of a new mesh, unless another server does; return the stored fields."""
        try:
            require_new()
        except StateError:
            # Another server may have begun the mesh meanwhile, so its records are no sign of a loss.
            if (fields := self._read()) is None:
                raise
            return fields
        return self._replaced(None, self._written(made()))

    def _encrypted(self, fields: Fields) -> Fields:
        """Encrypt the data key of another server that has no passphrase, or had none; return the fields."""
        others = {name: value for name, value in fields.items() if name != _KEY}
        # Outside of the change, which runs on the event loop: deriving the key takes 0.2 s.
        after = {**others, **self._written(_plain(fields))}
        if (stored := self._replaced(fields, after)) == after:
            _log.info("shared data key encrypted", key=SEAL)
        return stored

    def _read(self) -> Fields | None:
        version = self._calls.run(update(self._store, SEAL, _none, self._writer))
        return None if version.content is None else version.content.fields

    def _replaced(self, before: Fields | None, after: Fields) -> Fields:
        """Store fields in the place of `before`, unless others are there; return the stored ones."""

        def change(fields: Fields | None) -> Fields | None:
            return after if fields == before else None

        version = self._calls.run(update(self._store, SEAL, change, self._writer))
        return {} if version.content is None else version.content.fields

    def _written(self, data_key: bytes) -> Fields:
        mesh = RecordSeal(data_key).mesh
        if self._passphrase is None:
            return {_KEY: data_key.hex(), _MESH: mesh}
        return {_WRAPPED: json.loads(wrapped(data_key, self._passphrase).written()), _MESH: mesh}

    def _data_key(self, fields: Fields) -> bytes:
        if _WRAPPED not in fields:
            return _plain(fields)
        if self._passphrase is None:
            raise StateError(
                "the data key of the shared records is encrypted; set key_passphrase_file "
                "(MESHWRIGHT_KEY_PASSPHRASE_FILE) to the file with the passphrase"
            )
        try:
            wrapped_key = read_wrapped(json.dumps(fields[_WRAPPED]).encode())
        except ValueError as error:
            raise StateError(f"the record {SEAL} is damaged: {error}; {_MEND}") from None
        try:
            return wrapped_key.data_key(self._passphrase)
        except ValueError:
            raise StateError(
                f"the passphrase does not decrypt the data key in the record {SEAL}; use the passphrase of "
                "the other servers"
            ) from None


def is_same_mesh(one: Content, other: Content) -> bool:
    """Return whether two contents of the record `seal` have the data key of one mesh."""
    return one.fields == other.fields or (
        _MESH in one.fields and one.fields[_MESH] == other.fields.get(_MESH)
    )


def _none(fields: Fields | None) -> None:
    """Leave the record as it is."""
    del fields


def _plain(fields: Fields) -> bytes:
    """Return a data key that is stored as it is; raise StateError, without a part of it."""
    text = fields.get(_KEY)
    try:
        data_key = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        data_key = b""
    if len(data_key) != _DATA_KEY_BYTES:
        raise StateError(
            f"the record {SEAL} is damaged: field {_KEY} must have 64 hexadecimal digits; {_MEND}"
        )
    return data_key
