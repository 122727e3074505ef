"""The shared state of a mesh in a store of records. Everything here runs on the event loop of the store."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

import structlog

from certs.authority_records.fields import AUTHORITY, MOVING, require_moved, require_proof, state_in
from certs.errors import CorruptPairError, StateError
from certs.issuers.root import fingerprint_of_ca
from certs.keys.pair import Pair
from certs.ledger.records.fields import PROXIES, entries_in, in_order, name_of_record
from certs.ledger.records.header import HEADER, Header
from certs.pair_records.fields import SERVICES, is_of_service, pair_in
from certs.roots.authority_state import AuthorityState
from certs.state.sealing import RecordSeal
from certs.state.stored_pair import Holder
from meshwright.delivery.quarantine.verdict_fields import verdicts_in
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.enrolment.store.token_fields import (
    TOKENS,
    StoredToken,
    TokenWithUses,
    is_given_back,
    read_time_of_use,
    read_token_fields,
    read_use,
    token_and_slot,
)
from meshwright.mesh.names import Namespace, SecretName
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import Record, RecordStore
from meshwright.records.key import Key, key_of
from meshwright.records.listing import listed_once
from meshwright.transfer.mesh_state import UNREADABLE_PAIR, MeshState, first_of, require_readable
from meshwright.transfer.rejections import transferable
from xds.cache import NodeKey

GATEWAY: Final = key_of("gateway")
"""Key of the record with the Secrets that the mesh has written for gateways."""

LIST_SECONDS: Final = 60.0
"""Longest time in seconds until the store has listed the records of one prefix."""

ATTEMPTS: Final = 5
"""Limit of attempts to read everything while the CA stays the same."""

PREFIXES: Final = (HEADER, PROXIES, SERVICES, TOKENS, GATEWAY)
"""Common beginnings of all shared records but the CA and the data key."""

T = TypeVar("T")

_log = structlog.get_logger("transfer")


@dataclass(frozen=True, slots=True)
class StoredRoot:
    """Fields of the record of the CA, or None without a record."""

    fields: Fields | None

    @property
    def moving(self) -> str | None:
        """Return the fingerprint of the CA of a mesh that is being moved here, or None."""
        value = (self.fields or {}).get(MOVING)
        if "ca" in (self.fields or {}) or not isinstance(value, dict):
            return None
        return str(value.get("root"))

    @property
    def root(self) -> str | None:
        """Return the fingerprint of the CA that signs, or None without a CA. Raises StateError."""
        ca = (self.fields or {}).get("ca")
        if ca is None:
            return None
        certificate = ca.get("certificate") if isinstance(ca, dict) else None
        name, mend = f"in the record {AUTHORITY}", f"restore the record {AUTHORITY} from a backup"
        return fingerprint_of_ca(name, str(certificate).encode(), mend)


async def read_root(store: RecordStore) -> StoredRoot:
    """Return the record of the CA as it is now. Raises StateError for a damaged one, and RecordsError."""
    record = await store.read(AUTHORITY)
    return StoredRoot(None if record is None else fields_of(record))


async def list_all(store: RecordStore) -> Mapping[Key, Record]:
    """Return all shared records but the CA and the data key.

    The ledger comes before the tokens, because servers go on writing. A use of a token without the
    certificate does no harm: the machine repeats the request with the same key. A certificate without the use
    of a token would allow one use too many.
    """
    result: dict[Key, Record] = {}
    for prefix in PREFIXES:
        try:
            async with asyncio.timeout(LIST_SECONDS):
                records = await listed_once(store, prefix)
        except TimeoutError:
            raise StateError(
                f"the store has not listed the records {prefix} within {LIST_SECONDS:g} s"
            ) from None
        result.update((record.key, record) for record in records)
    return result


async def read_store(store: RecordStore, seal: RecordSeal) -> MeshState:
    """Return the state in a store, while servers may use it. Raises StateError, and RecordsError.

    An unreadable record is an error, because a revocation could be lost. Only a service certificate is left
    out, because a server issues another one.
    """
    before = await read_root(store)
    # A step of a root rotation between the lists would mix two states of the CA.
    for _ in range(ATTEMPTS):
        records = await list_all(store)
        after = await read_root(store)
        if before.fields == after.fields:
            return state_of(after, records, seal)
        before = after
    raise StateError("the CA in the store changed during each attempt: run the command again later")


def state_of(stored: StoredRoot, records: Mapping[Key, Record], seal: RecordSeal) -> MeshState:
    """Return the state in records. Raises StateError."""
    if stored.fields is None:
        raise StateError("the store has no mesh")
    authority = authority_in(stored.fields, seal)
    header = Header.read(fields_of(records[HEADER]) if HEADER in records else None)
    entries = in_order(
        entry if entry.signer else replace(entry, signer=header.first_authority or "")
        for key, record in records.items()
        if key.startswith(f"{PROXIES}/")
        for entry in _checked(record, lambda key, fields: entries_in(name_of_record(key), fields))
    )
    tokens = tokens_in(records)
    return MeshState(
        authority,
        header.authority,
        first_of(entries, header.first),
        entries,
        dict(_pairs(records, seal)),
        tokens,
        secrets_in(records.get(GATEWAY)),
        transferable(_rejections(records), entries),
    )


def authority_in(fields: Fields, seal: RecordSeal) -> AuthorityState:
    """Return the state of the authority.

    Raises StateError for an unreadable part, and during a move, and UnreadableContentError for a state
    written without the data key.
    """
    require_moved(fields)
    require_proof(fields, seal)
    authority = state_in(fields, seal)
    require_readable(authority)
    return authority


def fields_of(record: Record) -> Fields:
    """Return the fields of a record. Raises StateError with the key."""
    try:
        return Content.decode(record.content).fields
    except UnreadableContentError as error:
        raise _unreadable(record.key, error) from None


def tokens_in(records: Mapping[Key, Record]) -> tuple[TokenWithUses, ...]:
    """Return the join tokens in records with their uses, sorted by id. Raises StateError."""
    stored, uses = dict[str, StoredToken](), dict[str, dict[str, datetime]]()
    for key, record in records.items():
        if not key.startswith(f"{TOKENS}/"):
            continue
        token, slot = _checked(record, lambda key, _: token_and_slot(key))
        if slot is None:
            stored[token] = _checked(record, _token)
        elif not is_given_back(fields_of(record)):
            holder, at = _checked(record, lambda _, fields: (read_use(fields), read_time_of_use(fields)))
            uses.setdefault(token, {})[holder] = at
    return tuple(TokenWithUses(stored[token], uses.get(token, {})) for token in sorted(stored))


def secrets_in(record: Record | None) -> frozenset[SecretName]:
    """Return the Secrets in the record of gateways. Raises StateError."""
    if record is None:
        return frozenset()

    def read(_: Key, fields: Fields) -> frozenset[SecretName]:
        value = fields.get("secrets")
        try:
            return frozenset(SecretName(Namespace(str(space)), str(name)) for space, name in value)  # type: ignore[attr-defined] # checked by the errors
        except (TypeError, ValueError):
            raise UnreadableContentError("secrets: expected a list of pairs") from None

    return _checked(record, read)


def _rejections(records: Mapping[Key, Record]) -> Iterator[Verdict]:
    """Yield the readable verdicts on proxies; proxies reject the same as in others once more."""
    for key, record in records.items():
        if key.startswith(f"{PROXIES}/"):
            yield from verdicts_in(NodeKey(str(name_of_record(key))), fields_of(record)).verdicts


def _token(key: Key, fields: Fields) -> StoredToken:
    return read_token_fields(token_and_slot(key)[0], fields)


def _pairs(records: Mapping[Key, Record], seal: RecordSeal) -> Iterator[tuple[Holder, Pair]]:
    for key, record in sorted(records.items()):
        if not (key.startswith(f"{SERVICES}/") and is_of_service(key)):
            continue
        try:
            yield Holder(key), pair_in(Content.decode(record.content).fields, key, seal)
        except (CorruptPairError, UnreadableContentError) as error:
            _log.warning(UNREADABLE_PAIR, reason=str(error))


def _checked(record: Record, read: Callable[[Key, Fields], T]) -> T:
    """Return a value in a record, from its key and fields. Raises StateError with the key."""
    fields = fields_of(record)
    try:
        return read(record.key, fields)
    except UnreadableContentError as error:
        raise _unreadable(record.key, error) from None


def _unreadable(key: Key, error: UnreadableContentError) -> StateError:
    return StateError(
        f"record {key} cannot be read: {error}; repair the record, or remove it if it is not needed"
    )
