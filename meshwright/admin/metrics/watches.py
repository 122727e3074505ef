"""Metrics of the watches on a Kubernetes cluster, by kind of object."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from meshwright.admin.metrics.gauges import set_all
from meshwright.providers.contract import Watch

_RESOURCE: Final = ("resource",)


class WatchMetrics:
    """Ages, failures and counts of the watches on a Kubernetes cluster."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._watch_ages = {
            field: Gauge(f"meshwright_kubernetes_{name}_age_seconds", words, _RESOURCE, registry=registry)
            for field, name, words in (
                ("heard", "heard", "Seconds since the last answer or event of the API server for the kind."),
                ("last_event", "event", "Seconds since an object of the kind last changed."),
                ("last_list", "list", "Seconds since all objects of the kind were last listed."),
            )
        }
        self._watch_unfollowed = Gauge(
            "meshwright_kubernetes_failing",
            "1 while a required kind cannot be watched and its last objects stay in force, else 0.",
            _RESOURCE,
            registry=registry,
        )
        self._watch_events = Counter(
            "meshwright_kubernetes_events_total", "Changes of objects, by kind.", _RESOURCE, registry=registry
        )
        self._watch_relists = Counter(
            "meshwright_kubernetes_relists_total",
            "Lists after the first one, because a watch could not be resumed.",
            _RESOURCE,
            registry=registry,
        )
        self._watch_errors = Counter(
            "meshwright_kubernetes_errors_total",
            "Failed requests to the API server, by kind and reason.",
            (*_RESOURCE, "reason"),
            registry=registry,
        )
        self._watch_shown: dict[tuple[str, ...], int] = {}
        self._watch_last: dict[tuple[str, str], Watch] = {}

    def watched(self, watches: Iterable[Watch], now: datetime) -> None:
        """Set the metrics of all watches.

        A kind may have a watch for each of several namespaces: the worst age is shown, and the counts are
        added. A failed watch that is not `needed` shows no ages, because the server works without its
        objects. A restarted watch counts from 0 again, and its counts are added to the earlier ones.
        """
        watches = tuple(watches)
        followed = [watch for watch in watches if watch.needed or not watch.error]
        for field, gauge in self._watch_ages.items():
            first = _first((watch.name, getattr(watch, field)) for watch in followed)
            set_all(gauge, {kind: (now - at).total_seconds() for kind, at in first.items()})
        set_all(
            self._watch_unfollowed,
            _worst((watch.name, bool(watch.error) and watch.needed) for watch in watches),
        )
        for watch in watches:
            place = (watch.name, watch.namespace)
            if self._watch_last.get(place) is watch:
                continue  # most of thousands of watches are unchanged
            self._watch_last[place] = watch
            self._count(self._watch_events.labels(watch.name), ("events", *place), watch.events)
            self._count(self._watch_relists.labels(watch.name), ("relists", *place), watch.relists)
            for reason, total in watch.errors.items():
                self._count(self._watch_errors.labels(watch.name, reason), ("errors", *place, reason), total)

    def _count(self, counter: Counter, labels: tuple[str, ...], total: int) -> None:
        shown = self._watch_shown.get(labels, 0)
        # A lower total is from a restarted watch, which counts from 0.
        counter.inc(total - shown if total >= shown else total)
        self._watch_shown[labels] = total


def _first(moments: Iterable[tuple[str, datetime | None]]) -> dict[tuple[str, ...], datetime]:
    """Return the earliest time for each kind of object; kinds without a time are left out."""
    result: dict[tuple[str, ...], datetime] = {}
    for kind, at in moments:
        if at is not None and ((known := result.get((kind,))) is None or at < known):
            result[(kind,)] = at
    return result


def _worst(values: Iterable[tuple[str, float]]) -> dict[tuple[str, ...], float]:
    """Return the largest value for each kind of object."""
    result: dict[tuple[str, ...], float] = {}
    for kind, value in values:
        result[(kind,)] = max(value, result.get((kind,), value))
    return result
