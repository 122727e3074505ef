"""Records of a mesh that is written into a store, joined with what is there already.

A join only adds: a stored stamp, revocation or use stays. So a repeated move, a second move of the same mesh,
and a late write to a store in use do no harm. For example, a certificate is revoked afterwards if the
directory or the store has the revocation.

A pure module, but for the random numbers of the encryption.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from certs.errors import CorruptPairError
from certs.keys.pair import Pair
from certs.ledger.entry import LedgerEntry
from certs.ledger.records.fields import MOST_BYTES, entries_in, key_of_proxy, merged, with_entries
from certs.ledger.records.header import HEADER
from certs.pair_records.fields import key_of_holder, pair_in, with_pair
from certs.state.sealing import RecordSeal
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.enrolment.store.token_fields import (
    TokenWithUses,
    first_slot,
    key_of_token,
    read_token_fields,
    stored_fields,
    with_revocation,
)
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Fields
from meshwright.records.key import Key
from meshwright.records.update import Change
from meshwright.transfer.mesh_state import MeshState, header_fields
from meshwright.transfer.rejections import by_name, with_rejections
from meshwright.transfer.store_state import GATEWAY

Joins = Iterator[tuple[Key, Change]]
"""Keys of records, and the change of each from the present fields."""

ENDED: Final = timedelta(days=1)
"""Time after the end of a certificate after which a record with too many need not have the certificate."""

FORGOTTEN: Final = timedelta(days=366)
"""The same for a revoked certificate: the longest validity of a join token, so no machine joins again."""

_SECRETS: Final = "secrets"


def joins(mesh: MeshState, seal: RecordSeal, now: datetime) -> Joins:
    """Yield the changes for all records of a mesh, except the uses of tokens, the CA and the data key."""
    yield HEADER, lambda fields: _changed(header_fields(mesh, fields), fields)
    rejections = by_name(mesh.rejections)
    for name, entries in groupby(mesh.entries, lambda entry: entry.common_name):
        proxy = ProxyName.parse(name)
        fit = fitting(tuple(entries), now)
        yield key_of_proxy(proxy), _proxy(proxy, fit, rejections.get(name, ()))
    for holder, pair in sorted(mesh.pairs.items()):
        key = key_of_holder(holder)
        yield key, _service(key, pair, seal)
    for token in mesh.tokens:
        yield key_of_token(token.stored.record.id), _token(token)
    if mesh.gateway_secrets:
        secrets = frozenset((str(secret.namespace), secret.name) for secret in mesh.gateway_secrets)
        yield GATEWAY, lambda fields: _gateway(fields, secrets)


def fitting(entries: tuple[LedgerEntry, ...], now: datetime) -> tuple[LedgerEntry, ...]:
    """Return the entries of one proxy that fit into a record; all of them, if possible.

    A ledger in a file keeps certificates for ever, and a record has a limit. If there are too many entries,
    the result has only valid certificates, revoked ones by which a proxy must be refused, and the newest ones
    with the progress of the proxy.
    """
    if len(json.dumps(with_entries(None, entries))) <= MOST_BYTES:
        return entries
    ended, forgotten = now - ENDED, now - FORGOTTEN
    # `certs.ledger.progress` derives the progress from the newest entry with each stamp.
    needed = {
        max(reached, key=lambda entry: entry.issued_at).serial
        for reached in (
            [entry for entry in entries if entry.admitted_at and not entry.revoked_at],
            [entry for entry in entries if entry.claimed_at and not entry.revoked_at],
        )
        if reached
    }
    return tuple(
        entry
        for entry in entries
        if entry.serial in needed or entry.not_after > (forgotten if entry.revoked_at else ended)
    )


def slots(key: str, uses: int, taken: Mapping[int, str]) -> Iterable[int]:
    """Yield the free slots for the use of a key digest, the best one first; none if the key has a use."""
    if key in taken.values():
        return
    begin = first_slot(key, uses)
    yield from (slot for slot in (*range(begin, uses), *range(begin)) if slot not in taken)


def _changed(after: Fields, before: Fields | None) -> Fields | None:
    return None if after == before else after


def _proxy(name: ProxyName, entries: tuple[LedgerEntry, ...], verdicts: tuple[Verdict, ...]) -> Change:
    def change(fields: Fields | None) -> Fields | None:
        joined = with_entries(fields, merged(entries, entries_in(name, fields)))
        return with_rejections(fields if joined is None else joined, verdicts) or joined

    return change


def _service(key: Key, pair: Pair, seal: RecordSeal) -> Change:
    """Keep the newer certificate of both, because proxies have it."""
    written: Fields | None = None

    def change(fields: Fields | None) -> Fields | None:
        nonlocal written
        if fields is not None and not _is_newer(pair, key, fields, seal):
            return None
        # Encrypt once: because of the random nonce, a repeated write would look like another one.
        written = written or with_pair(fields, key, pair, seal)
        return written

    return change


def _is_newer(pair: Pair, key: Key, fields: Fields, seal: RecordSeal) -> bool:
    try:
        there = pair_in(fields, key, seal).leaf
    except CorruptPairError:
        return True
    mine = pair.leaf
    return (mine.not_before, mine.not_after, mine.serial) > (there.not_before, there.not_after, there.serial)


def _token(token: TokenWithUses) -> Change:
    record = token.stored.record

    def change(fields: Fields | None) -> Fields | None:
        if fields is None:
            return stored_fields(token.stored)
        read_token_fields(record.id, fields)
        return None if record.revoked_at is None else with_revocation(fields, record.revoked_at)

    return change


def _gateway(fields: Fields | None, secrets: frozenset[tuple[str, str]]) -> Fields | None:
    there = (fields or {}).get(_SECRETS)
    known = {tuple(map(str, pair)) for pair in there} if isinstance(there, list) else set()
    return (
        None
        if secrets <= known
        else {**(fields or {}), _SECRETS: [list(pair) for pair in sorted(known | secrets)]}
    )
