"""Fields of a server's report in a root rotation, in one record or, with many proxies, in several ones.

The server `a-5fd8` has the records `reports/a-5fd8/0`, `reports/a-5fd8/1` and so on. Each has facts about up
to PROXIES_IN_A_RECORD proxies, as base64 of 13 bytes each: the short form of the name, the time of the
agent's confirmation in seconds since 1970 or 0, and one bit for each fact.

    {"step": "trusting 5f2c... 77ab... 2026-11-22T12:00:00+00:00", "is_behind": false, "issued": ["3f9a02"],
     "proxies": "8c2f...", "number": 7, "proof": "9b1d..."}

`number` and `proof` are those of `certs.report_records.server_records`.

A pure module.
"""

import base64
import enum
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from certs.roots.proxy_facts import KEY_BYTES, ProxyFacts, ProxyKey
from certs.roots.rotation import Fingerprint, Rotation
from certs.roots.server_report import ServerReport, step_of
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.contract import ReplicaId
from meshwright.records.key import Key, key_of, words_of

REPORTS: Final = key_of("reports")
"""Common beginning of the keys of all reports."""

PROXIES_IN_A_RECORD: Final = 8000
"""Limit of the facts in one record: as text they take 17.4 bytes each, and a content has at most 256 KiB."""

_ROW: Final = struct.Struct(f">{KEY_BYTES}sIB")


class _Bit(enum.IntFlag):
    """Facts about one proxy; the other root is the one that does not sign."""

    CONNECTED = enum.auto()
    HAS_STREAM = enum.auto()
    MESH_HAS_SIGNER = enum.auto()
    MESH_HAS_OTHER = enum.auto()
    SHOWS_SIGNER = enum.auto()
    HAS_CONFIRMED = enum.auto()
    CHANNEL_HAS_SIGNER = enum.auto()
    CHANNEL_HAS_OTHER = enum.auto()


def key_of_report(replica: ReplicaId, number: int) -> Key:
    """Return the key of a record with a part of a server's report."""
    return key_of(*words_of(REPORTS), replica, str(number))


def replica_of(key: Key) -> ReplicaId:
    """Return the server whose report is in the record with this key."""
    words = words_of(key)
    return ReplicaId(words[1] if len(words) > 1 else "")


def parts_of(report: ServerReport, rotation: Rotation) -> tuple[Fields, ...]:
    """Return the fields of all records of a report about this rotation, at least of one."""
    rows = [_row(key, facts, rotation) for key, facts in sorted(report.proxies.items())]
    first, *others = _batches(rows) or [b""]
    step = {"step": report.step}
    head: Fields = {
        **step, "is_behind": report.is_behind, "issued": list(report.issued), "proxies": _text(first)
    }  # fmt: skip
    return (head, *({**step, "proxies": _text(rows)} for rows in others))


def report_in(parts: Sequence[Fields], rotation: Rotation) -> ServerReport:
    """Return the report in these records, as far as it is about this rotation.

    A report of another step has no proxies. Raises UnreadableContentError.
    """
    head = parts[0]
    step, is_behind, issued = (head.get(name) for name in ("step", "is_behind", "issued"))
    if not isinstance(step, str) or not isinstance(is_behind, bool):
        raise UnreadableContentError("step: expected a text, is_behind: expected true or false")
    if not isinstance(issued, list) or not all(isinstance(serial, str) for serial in issued):
        raise UnreadableContentError("issued: expected a list of serials")
    proxies: dict[ProxyKey, ProxyFacts] = {}
    if step == step_of(rotation):
        for part in parts:
            if part.get("step") == step:  # a part of the next step is about other roots
                proxies.update(_facts(part.get("proxies"), rotation))
    return ServerReport(step, is_behind, tuple(issued), proxies)


def _batches(rows: Sequence[bytes]) -> list[bytes]:
    return [
        b"".join(rows[begin : begin + PROXIES_IN_A_RECORD])
        for begin in range(0, len(rows), PROXIES_IN_A_RECORD)
    ]


def _text(rows: bytes) -> str:
    return base64.b64encode(rows).decode()


def _row(key: ProxyKey, facts: ProxyFacts, rotation: Rotation) -> bytes:
    bits = _Bit(0)
    if facts.connected:
        bits |= _Bit.CONNECTED
    if facts.mesh is not None:
        bits |= _Bit.HAS_STREAM
        bits |= _roots(facts.mesh, rotation, _Bit.MESH_HAS_SIGNER, _Bit.MESH_HAS_OTHER)
        if facts.service == rotation.signer:
            bits |= _Bit.SHOWS_SIGNER
    if facts.channel is not None:
        bits |= _Bit.HAS_CONFIRMED
        bits |= _roots(facts.channel, rotation, _Bit.CHANNEL_HAS_SIGNER, _Bit.CHANNEL_HAS_OTHER)
    at = 0 if facts.confirmed_at is None else int(facts.confirmed_at.timestamp())
    return _ROW.pack(key, at, bits)


def _roots(roots: Iterable[Fingerprint], rotation: Rotation, signer: _Bit, other: _Bit) -> _Bit:
    bits = {rotation.signer: signer, rotation.other: other}
    return _Bit(sum(bits[root] for root in roots if root in bits))


def _facts(text: object, rotation: Rotation) -> Mapping[ProxyKey, ProxyFacts]:
    try:
        rows = base64.b64decode(text if isinstance(text, str) else "-", validate=True)
        return dict(_read_rows(rows, rotation))
    except (ValueError, struct.error):
        raise UnreadableContentError(f"proxies: expected base64 of rows with {_ROW.size} bytes") from None


def _read_rows(rows: bytes, rotation: Rotation) -> Iterator[tuple[ProxyKey, ProxyFacts]]:
    known: dict[tuple[int, int], ProxyFacts] = {}  # thousands of proxies share a few values
    for key, at, bits in _ROW.iter_unpack(rows):
        found = known.get((at, bits))
        if found is None:
            found = known[at, bits] = _read_facts(at, _Bit(bits), rotation)
        yield ProxyKey(key), found


def _read_facts(at: int, bits: _Bit, rotation: Rotation) -> ProxyFacts:
    mesh = channel = service = None
    if _Bit.HAS_STREAM in bits:
        mesh = _read_roots(bits, rotation, _Bit.MESH_HAS_SIGNER, _Bit.MESH_HAS_OTHER)
        service = rotation.signer if _Bit.SHOWS_SIGNER in bits else rotation.other
    if _Bit.HAS_CONFIRMED in bits:
        channel = _read_roots(bits, rotation, _Bit.CHANNEL_HAS_SIGNER, _Bit.CHANNEL_HAS_OTHER)
    confirmed_at = datetime.fromtimestamp(at, UTC) if at else None
    return ProxyFacts(mesh, service, channel, confirmed_at, _Bit.CONNECTED in bits)


def _read_roots(bits: _Bit, rotation: Rotation, signer: _Bit, other: _Bit) -> frozenset[Fingerprint]:
    return frozenset(
        root for root, bit in ((rotation.signer, signer), (rotation.other, other)) if bit in bits
    )
