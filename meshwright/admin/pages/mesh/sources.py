"""`/debug/sources`: freshness and objects of each source, and deleted objects still in use."""

from datetime import datetime

from meshwright.admin.jsonable import Document, jsonable
from meshwright.admin.pages.proxies.sync_reason import duration
from meshwright.admin.readers import SourceReading
from meshwright.providers.contract import Counts, Freshness, Watch


def sources(reading: SourceReading, now: datetime) -> Document:
    """Return the freshness and the object counts of every source as JSON."""
    counts = reading.counts()
    return {
        "sources": [
            source(name, freshness, counts.get(name, Counts()), now)
            for name, freshness in sorted(reading.freshness().items())
        ]
    }


def source(name: str, freshness: Freshness, counts: Counts, now: datetime) -> Document:
    """Return one source; ages are in words and in seconds, None for an event that never happened.

    `held` names objects that stay in force although the source reports them as deleted. `watches` are the
    parts of a source that follows each kind of object separately.
    """
    return {
        "name": name,
        "last_event": jsonable(freshness.last_event),
        "event_age": _elapsed_text(freshness.last_event, now),
        "event_age_seconds": _age(freshness.last_event, now),
        "last_full_read": jsonable(freshness.last_full_read),
        "age": _elapsed_text(freshness.last_full_read, now),
        "age_seconds": _age(freshness.last_full_read, now),
        "objects": {"good": counts.good, "stale": counts.stale, "refused": counts.refused},
        "held": list(freshness.held),
        "error": freshness.error or None,
        "error_since": jsonable(freshness.error_since),
        "watches": [_watch(watch, now) for watch in freshness.watches],
    }


def _watch(watch: Watch, now: datetime) -> Document:
    return {
        "name": watch.name,
        "namespace": watch.namespace,
        "heard": jsonable(watch.heard),
        "heard_age": _elapsed_text(watch.heard, now),
        "heard_age_seconds": _age(watch.heard, now),
        "last_event": jsonable(watch.last_event),
        "event_age": _elapsed_text(watch.last_event, now),
        "event_age_seconds": _age(watch.last_event, now),
        "last_list": jsonable(watch.last_list),
        "list_age": _elapsed_text(watch.last_list, now),
        "list_age_seconds": _age(watch.last_list, now),
        "relists": watch.relists,
        "events": watch.events,
        "errors": dict(sorted(watch.errors.items())),
        "error": watch.error or None,
        "error_since": jsonable(watch.error_since),
    }


def _elapsed_text(moment: datetime | None, now: datetime) -> str | None:
    return None if moment is None else duration(now - moment)


def _age(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else (now - moment).total_seconds()
