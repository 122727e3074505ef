"""Values of the live view, read from the control plane's debug JSON and the programs' counters. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from demo.apps.counters import Counters
from demo.topology import (
    BOOKBUYER,
    BOOKSTORE,
    BOOKTHIEF,
    BOOKWAREHOUSE,
    MYSQL,
    PLACES,
    STORE_V1,
    STORE_V2,
    WAREHOUSE,
    Place,
)
from meshwright.mesh.service import ServiceKey

CALLS: Final[tuple[tuple[Place, ServiceKey], ...]] = (
    (BOOKBUYER, BOOKSTORE),
    (BOOKTHIEF, BOOKSTORE),
    (STORE_V1, BOOKWAREHOUSE),
    (STORE_V2, BOOKWAREHOUSE),
    (WAREHOUSE, MYSQL),
)
"""Calls that the programs make all the time, so the live view can observe them: client and service."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Policy and observed calls of one client and one service.

    `allowed` is None if `/debug/access` has no entry for the pair; `by` names the objects that allow the
    calls, for example `TrafficTarget bookstore/bookstore`. `outcomes` counts the calls of the last few
    seconds by outcome, `rate` is their number per second, and `last` is the newest outcome.
    """

    source: str
    destination: str
    allowed: bool | None
    by: tuple[str, ...]
    rate: float
    outcomes: tuple[tuple[str, int], ...]
    last: str


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One sidecar: connected, expected, disconnected or held, and the sync state of each xDS type."""

    name: str
    state: str
    sync: tuple[tuple[str, str], ...]

    @property
    def is_synced(self) -> bool:
        """Return whether the sidecar is connected and has acknowledged all its resources."""
        return self.state == "connected" and all(state in ("synced", "asked") for _, state in self.sync)


@dataclass(frozen=True, slots=True)
class Picture:
    """All values of the live view at one moment; `certificates` has pairs of identity and end of validity."""

    mode: str
    mesh: str
    variants: str
    now: datetime
    pairs: tuple[Pair, ...] = ()
    split: tuple[tuple[str, int], ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    certificates: tuple[tuple[str, datetime], ...] = ()
    problems: tuple[str, ...] = ()
    silent: str = ""
    """Error of the last unanswered query to the control plane; empty if all were answered."""


def pairs(
    access: Mapping[str, object],
    before: Mapping[str, Counters],
    after: Mapping[str, Counters],
    seconds: float,
) -> tuple[Pair, ...]:
    """Return the row of each call in the live view: policy from `/debug/access`, and rate and outcomes.

    Rates and outcomes are the difference of the programs' counters at two moments `seconds` apart.
    """
    result = []
    for place, service in CALLS:
        old, new = before.get(place.name, Counters()), after.get(place.name, Counters())
        counts = new.calls.get(service.name, Counter()) - old.calls.get(service.name, Counter())
        allowed, by = _policy(access, place, service)
        rate = counts.total() / seconds if seconds > 0 else 0.0
        last = new.last.get(service.name, "-")
        outcomes = tuple(sorted(counts.items()))
        result.append(Pair(place.name, service.name, allowed, by, rate, outcomes, last))
    return tuple(result)


def _policy(
    access: Mapping[str, object], place: Place, service: ServiceKey
) -> tuple[bool | None, tuple[str, ...]]:
    for entry in _mappings(access, "access"):
        if entry.get("source") == str(place.identity) and entry.get("destination_service") == str(service):
            by = entry.get("by")
            return bool(entry.get("allowed")), tuple(str(item) for item in by) if isinstance(by, list) else ()
    return None, ()


def split(before: Mapping[str, Counters], after: Mapping[str, Counters]) -> tuple[tuple[str, int], ...]:
    """Return the number of books that bookbuyer bought from each version between two moments."""
    old, new = before.get(BOOKBUYER.name, Counters()), after.get(BOOKBUYER.name, Counters())
    bought = new.identities - old.identities
    return tuple((place.name, bought[place.name]) for place in (STORE_V1, STORE_V2))


def sidecars(proxies: Mapping[str, object]) -> tuple[Sidecar, ...]:
    """Read the bookstore's sidecars from `/debug/proxy`, in the order of PLACES."""
    listed = {str(entry.get("uuid")): entry for entry in _mappings(proxies, "proxies")}
    return tuple(_sidecar(place, listed.get(place.uuid, {})) for place in PLACES)


def _sidecar(place: Place, entry: Mapping[str, object]) -> Sidecar:
    sync = entry.get("sync")
    states = sorted(sync.items()) if isinstance(sync, dict) else []
    state = "held" if entry.get("held") else str(entry.get("state", "unknown"))
    return Sidecar(place.name, state, tuple((str(name), str(value)) for name, value in states))


def certificates(document: Mapping[str, object]) -> tuple[tuple[str, datetime], ...]:
    """Read service identities and the end of validity of their certificates from `/debug/certs`, sorted."""
    return tuple(
        sorted(
            (str(entry["identity"]), datetime.fromisoformat(str(entry["not_after"])))
            for entry in _mappings(document, "service_certificates")
        )
    )


def problems(document: Mapping[str, object]) -> tuple[str, ...]:
    """Read errors and warnings about manifests from `/debug/policies`, one line for each."""
    return tuple(
        str(entry.get("line", entry))
        for entry in _mappings(document, "problems")
        if entry.get("severity") != "info"
    )


def _mappings(document: Mapping[str, object], name: str) -> Iterator[Mapping[str, object]]:
    entries = document.get(name)
    if isinstance(entries, Sequence):
        yield from (entry for entry in entries if isinstance(entry, Mapping))
