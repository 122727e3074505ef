"""Reason why a proxy is not in step: a short clause from its certificate, streams and group."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from certs.ledger.entry import LedgerEntry, LedgerState
from meshwright.admin.proxy_document import (
    CERTIFICATE_EXPIRED,
    CERTIFICATE_REVOKED,
    CERTIFICATE_UNUSED,
    GROUP_FAILED,
    WORKLOAD_GONE,
)
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName
from meshwright.sidecars.addresses import plain_address
from meshwright.sidecars.type_words import short_type
from xds.protocol.resources.resource import Reference, ResourceName, TypeUrl
from xds.stream_status import StreamStatus, SyncState, TypeStatus, Variant

_NAMED: Final = 2
"""Maximum number of named callers that have ejected a proxy."""

Refusal = Callable[[TypeUrl, ResourceName], str]


@dataclass(frozen=True, slots=True)
class ProxyEvidence:
    """Evidence about one proxy besides its status; for `entry` see `newest`.

    `failure` is the reason why its group could not be computed, empty after a success. `rejected` are
    rejected resources that the proxy does not get; `refusal` returns the reason of a rejection if known.
    `waits_for` is the reason why its workload gets no traffic yet, else empty. `unreceived` describes a
    response that may be too large for the proxy. `ejected_by` are callers that have ejected an endpoint at
    its address; such a proxy is dead if it is also disconnected for longer than `dead_after`.
    """

    streams: tuple[StreamStatus, ...] = ()
    entry: LedgerEntry | None = None
    failure: str = ""
    rejected: tuple[Reference, ...] = ()
    refusal: Refusal = field(default=lambda _, __: "")
    waits_for: str = ""
    unreceived: str = ""
    ejected_by: tuple[ProxyName, ...] = ()
    dead_after: timedelta = timedelta.max


def newest(entries: Iterable[LedgerEntry], now: datetime) -> Mapping[str, LedgerEntry]:
    """Return the relevant certificate of each proxy, by common name.

    A certificate in force has precedence, then a claimed one, then the newest.
    """

    def rank(entry: LedgerEntry) -> tuple[bool, bool, datetime]:
        in_force = entry.in_force(now)
        return in_force, in_force and entry.claimed_at is not None, entry.issued_at

    # The last entry of a name wins, so the highest rank must be last.
    return {ledger_entry.common_name: ledger_entry for ledger_entry in sorted(entries, key=rank)}


def why(proxy: ProxyStatus, known: ProxyEvidence, now: datetime) -> str:
    """Return the reasons why a proxy is not in step or its workload gets no traffic; else empty."""
    waits = f"not admitted yet: {known.waits_for}" if known.waits_for else ""
    behind = _behind(proxy, known, now, waits)
    result = "; ".join(filter(None, (_shared(proxy), behind, _ejected(known.ejected_by))))
    return f"dead: {result}" if is_dead(proxy, known, now) else result


def is_dead(proxy: ProxyStatus, known: ProxyEvidence, now: datetime) -> bool:
    """Return True if a proxy is disconnected for long, and callers have ejected it.

    Neither condition alone is a proof. A proxy whose workload is gone is never dead, because it has no
    callers.
    """
    should_be_here = proxy.state in (ProxyState.EXPECTED, ProxyState.DISCONNECTED)
    return should_be_here and bool(known.ejected_by) and now - proxy.since > known.dead_after


def _behind(proxy: ProxyStatus, known: ProxyEvidence, now: datetime, waits: str) -> str:
    match proxy.state:
        case ProxyState.EXPECTED:
            if refused := _refused(known.entry, now):
                return refused
            if known.entry is None or known.entry.claimed_at is None:
                return "never connected"
            return "; ".join(filter(None, ("not connected since the control plane started", waits)))
        case ProxyState.DISCONNECTED:
            ago = f"disconnected {duration(now - proxy.since)} ago"
            return "; ".join(filter(None, (_refused(known.entry, now), ago, known.unreceived, waits)))
        case ProxyState.ENDED:
            ended = f"disconnected {duration(now - proxy.since)} ago, and its workload is gone"
            return "; ".join(filter(None, (_refused(known.entry, now), ended)))
        case ProxyState.CONNECTED:
            return "; ".join(filter(None, (_connected(proxy, known, now), waits)))


def _shared(proxy: ProxyStatus) -> str:
    """Return a clause with the addresses of all proxies sharing an identity; empty without sharing."""
    if not proxy.peers:
        return ""
    return f"{len(proxy.peers)} proxies share this identity: {', '.join(map(plain_address, proxy.peers))}"


def _ejected(by: tuple[ProxyName, ...]) -> str:
    """Return a clause with the calling proxies by which this one is ejected; empty without any."""
    if not by:
        return ""
    named = ", ".join(map(str, by[:_NAMED]))
    return f"ejected by {named}" + (f" and {len(by) - _NAMED} more" if len(by) > _NAMED else "")


def type_state(stream: StreamStatus, status: TypeStatus) -> SyncState:
    """Return the state of a type on a stream.

    A delta client that reconnects lists its resources. If all of them are current, the server sends nothing,
    and the client has nothing to acknowledge. Such a type is in sync, not pending.
    """
    if status.state is SyncState.ASKED and stream.served and stream.variant is Variant.DELTA:
        return SyncState.SYNCED
    return status.state


def pending(streams: Iterable[StreamStatus], now: datetime) -> dict[str, float]:
    """Return the seconds for which each type has waited for an answer; the longest time counts."""
    result: dict[str, float] = {}
    for status in (type_status for stream in streams for type_status in stream.types):
        if status.state is SyncState.PENDING and status.sent_at is not None:
            name = short_type(status.type_url)
            result[name] = max(result.get(name, 0.0), (now - status.sent_at).total_seconds())
    return result


def duration(length: timedelta) -> str:
    """Return a duration in its largest unit, for example `3 s`, `5 min`, `2 h` or `4 d`."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _refused(entry: LedgerEntry | None, now: datetime) -> str:
    if entry is None:
        return "no certificate was issued"
    if entry.state is LedgerState.REVOKED:
        return CERTIFICATE_REVOKED
    if now > entry.not_after:
        return CERTIFICATE_EXPIRED
    return CERTIFICATE_UNUSED if entry.unclaimed_too_long(now) else ""


def _connected(proxy: ProxyStatus, known: ProxyEvidence, now: datetime) -> str:
    failed = f"{GROUP_FAILED}: {known.failure}" if known.failure else ""
    # Only one reason is returned, so the most serious ones are checked first.
    if not any(stream.served for stream in known.streams):
        if not proxy.known:
            return "held: workload unknown"
        return failed or "held: its configuration is not published yet"
    if rejected := _rejected(known):
        return rejected
    if failed:
        return failed
    if known.unreceived:
        return known.unreceived
    if not proxy.known:
        return WORKLOAD_GONE
    if waiting := pending(known.streams, now):
        name, seconds = max(waiting.items(), key=lambda item: item[1])
        return f"{name} pending for {duration(timedelta(seconds=seconds))}"
    for stream in known.streams:
        for status in stream.types:
            if type_state(stream, status) is SyncState.ASKED:
                return f"requested {_plural(short_type(status.type_url))} that do not exist"
    return ""


def _rejected(known: ProxyEvidence) -> str:
    """Return a clause for the first rejected resource, with the reason or else with its name."""
    result = [
        (status.type_url, name)
        for stream in known.streams
        for status in stream.types
        if status.state is SyncState.REJECTED
        for name in status.rejected
    ]
    for type_url, name in dict.fromkeys((*known.rejected, *result)):
        return f"{short_type(type_url)} rejected: {known.refusal(type_url, name) or name}"
    return ""


def _plural(word: str) -> str:
    return f"{word}s" if word != "other" else "types"
