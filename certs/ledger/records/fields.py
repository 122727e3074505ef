"""Fields of a proxy's record: all certificates of one name, with their stamps.

The record of the proxy `9f0c.cart.shop` has the key `proxies/shop/cart/9f0c`. Times are whole seconds since
1970, UTC; unknown facts are left out. A writer keeps all fields that it does not know, so that other parts of
the server, and newer versions, can add theirs.

    {"certificates": {"3f9a02": {"issued_at": 1938928089, "not_after": 1970464089, "signer": "ab12"}},
     "forgotten": ["2c81d7"]}

A pure module.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from certs.errors import StateError
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName, is_dns_label
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.contract import LARGEST_CONTENT
from meshwright.records.key import Key, key_of, words_of

PROXIES: Final = key_of("proxies")
"""Common beginning of the keys of all proxies."""

MOST_BYTES: Final = LARGEST_CONTENT // 4
"""Limit of the fields to which a certificate is added, in bytes: later stamps make them longer."""

FORGOTTEN_AT_MOST: Final = 20
"""Number of removed certificates whose serials a record keeps, so that records do not grow for ever."""

_CERTIFICATES: Final = "certificates"
_FORGOTTEN: Final = "forgotten"
_TIMES: Final = ("issued_at", "not_after", "claimed_at", "revoked_at", "admitted_at", "seen_at", "claim_by")
_NEEDED: Final = ("issued_at", "not_after")
_TEXTS: Final = ("claimed_from", "revoked_why", "signer", "joined_by", "roots")


def key_of_proxy(name: ProxyName) -> Key:
    """Return the key of the record with all certificates of a proxy."""
    return key_of(*words_of(PROXIES), name.namespace, name.service, name.uuid)


def name_of_record(key: Key) -> ProxyName:
    """Return the proxy of a key; raise UnreadableContentError for a key of another form."""
    words = words_of(key)[1:]
    if len(words) != 3 or not all(map(is_dns_label, words)):
        raise UnreadableContentError("the key is not of the form proxies/NAMESPACE/SERVICE/UUID")
    namespace, service, uuid = words
    return ProxyName(ProxyUuid(uuid), ServiceName(service), Namespace(namespace))


def entries_in(name: ProxyName, fields: Fields | None) -> tuple[LedgerEntry, ...]:
    """Return the certificates in a record, sorted by time of issue, then serial.

    Raises UnreadableContentError with the key.
    """
    certificates = {} if fields is None else fields.get(_CERTIFICATES, {})
    try:
        if not isinstance(certificates, dict):
            raise UnreadableContentError(f"{_CERTIFICATES}: expected a JSON object")
        return in_order(_entry(name, serial, value) for serial, value in certificates.items())
    except UnreadableContentError as error:
        raise UnreadableContentError(f"record {key_of_proxy(name)}: {error}") from error


def in_order(entries: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """Return entries sorted by common name, then time of issue, then serial."""
    return tuple(sorted(entries, key=lambda entry: (entry.common_name, entry.issued_at, entry.serial)))


def with_entries(fields: Fields | None, entries: Iterable[LedgerEntry]) -> Fields | None:
    """Return the fields of a record with these certificates set, or None if the fields have them already.

    Certificates and facts that are not in `entries` stay as they are. Call `entries_in` before, which checks
    the fields.
    """
    before = {} if fields is None else fields.get(_CERTIFICATES, {})
    assert isinstance(before, dict)  # noqa: S101 - checked by `entries_in`, for the type checker
    after = {entry.serial: {**before.get(entry.serial, {}), **_stored(entry)} for entry in entries}
    certificates = {**before, **after}
    if certificates == before:
        return None
    return {**({} if fields is None else fields), _CERTIFICATES: certificates}


def without_entries(fields: Fields | None, serials: Collection[str]) -> Fields | None:
    """Return the fields of a record without these certificates, or None if the fields have none of them.

    The serials of the removed certificates stay, so that no server takes them for lost ones. Call
    `entries_in` before, which checks the fields.
    """
    before = {} if fields is None else fields.get(_CERTIFICATES, {})
    assert isinstance(before, dict)  # noqa: S101 - checked by `entries_in`, for the type checker
    certificates = {serial: value for serial, value in before.items() if serial not in serials}
    if certificates == before:
        return None
    removed = forgotten_together(forgotten_in(fields), sorted(before.keys() - certificates.keys()))
    return {**(fields or {}), _CERTIFICATES: certificates, **removed}


def forgotten_in(fields: Fields | None) -> tuple[str, ...]:
    """Return the serials of the certificates that a server removed from a record last."""
    serials = {} if fields is None else fields.get(_FORGOTTEN, ())
    return tuple(map(str, serials)) if isinstance(serials, list) else ()


def forgotten_together(earlier: Iterable[str], later: Iterable[str]) -> Fields:
    """Return the field with the serials of removed certificates; `later` stay if there are too many."""
    last = tuple(later)
    serials = [*(serial for serial in earlier if serial not in last), *last][-FORGOTTEN_AT_MOST:]
    return {_FORGOTTEN: serials} if serials else {}


def require_room(name: ProxyName, fields: Fields) -> None:
    """Raise StateError if the fields of a proxy's record are too long for another certificate."""
    size = len(json.dumps(fields, ensure_ascii=False).encode())
    if size > MOST_BYTES:
        raise StateError(
            f"the record of {name} would have {size} bytes, and at most {MOST_BYTES} are allowed: this proxy"
            " has too many certificates"
        )


def merged(known: Iterable[LedgerEntry], stored: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """Return the stored entries, with the entries and stamps added that only `known` has.

    A stored stamp wins, as the first written one. A revocation is in the result if any of the two has it.
    """
    result = {entry.serial: entry for entry in stored}
    for entry in known:
        there = result.get(entry.serial)
        result[entry.serial] = entry if there is None else there.stamped(_stamps(entry))
    return in_order(result.values())


def as_issued(entry: LedgerEntry) -> LedgerEntry:
    """Return an entry without stamps, as it was recorded."""
    return replace(
        entry,
        claimed_at=None,
        revoked_at=None,
        admitted_at=None,
        claimed_from="",
        seen_at=None,
        revoked_why="",
    )


def _stamps(entry: LedgerEntry) -> Mapping[Stamp, StampDetail]:
    result = {}
    if entry.claimed_at is not None:
        result[Stamp.CLAIMED] = StampDetail(entry.claimed_at, entry.claimed_from)
    if entry.admitted_at is not None:
        result[Stamp.ADMITTED] = StampDetail(entry.admitted_at)
    if entry.revoked_at is not None:
        result[Stamp.REVOKED] = StampDetail(entry.revoked_at, entry.revoked_why)
    return result


def _stored(entry: LedgerEntry) -> dict[str, object]:
    times = {name: getattr(entry, name) for name in _TIMES}
    stored: dict[str, object] = {name: int(at.timestamp()) for name, at in times.items() if at is not None}
    stored |= {name: text for name in _TEXTS if (text := getattr(entry, name))}
    if entry.term is not None:
        stored["term"] = int(entry.term.total_seconds())
    return stored


def _entry(name: ProxyName, serial: str, value: object) -> LedgerEntry:
    if not isinstance(value, dict):
        raise UnreadableContentError(f"certificate {serial}: expected a JSON object")
    times = {field: _time(serial, field, value.get(field)) for field in _TIMES}
    if any(times[field] is None for field in _NEEDED):
        raise UnreadableContentError(f"certificate {serial}: {' and '.join(_NEEDED)} are required")
    texts = {field: value.get(field, "") for field in _TEXTS}
    for field, text in texts.items():
        if not isinstance(text, str):
            raise UnreadableContentError(f"certificate {serial}: {field}: expected a text")
    term = _seconds(serial, "term", value.get("term"))
    return LedgerEntry(
        serial,
        str(name),
        name.uuid,
        term=None if term is None else timedelta(seconds=term),
        **times,  # type: ignore[arg-type] # the fields of _NEEDED are times
        **texts,
    )


def _time(serial: str, field: str, value: object) -> datetime | None:
    seconds = _seconds(serial, field, value)
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _seconds(serial: str, field: str, value: object) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= _LAST_SECOND:
        raise UnreadableContentError(
            f"certificate {serial}: {field}: expected whole seconds, for example 1938928089"
        )
    return value


_LAST_SECOND: Final = int(datetime.max.replace(tzinfo=UTC).timestamp()) - 1
