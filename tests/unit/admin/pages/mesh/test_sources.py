"""Tests of the page of sources, by whole values."""

from datetime import timedelta
from typing import Any

from meshwright.admin.pages.mesh.sources import source, sources
from meshwright.providers.contract import Counts, Freshness, Watch


def test_source_shows_its_ages_and_counts(reading: Any, now: Any) -> None:
    """A source shows the time since its last full read, the time since its last change, and its counts."""
    assert sources(reading, now) == {
        "sources": [
            {
                "name": "directory",
                "last_event": "2026-01-02T03:04:05.000Z",
                "event_age": "0 s",
                "event_age_seconds": 0.0,
                "last_full_read": "2026-01-02T03:04:02.000Z",
                "age": "3 s",
                "age_seconds": 3.0,
                "objects": {"good": 3, "stale": 2, "refused": 1},
                "held": [],
                "error": None,
                "error_since": None,
                "watches": [],
            }
        ]
    }


def test_unreadable_source_shows_its_error_and_held_objects(now: Any) -> None:
    """A source that cannot be read shows the error, its start and the held objects.

    Ages without an event are null.
    """
    since = now - timedelta(seconds=9)
    assert source("dns", Freshness(error="gone", error_since=since, held=("shop/db",)), Counts(), now) == {
        "name": "dns",
        "last_event": None,
        "event_age": None,
        "event_age_seconds": None,
        "last_full_read": None,
        "age": None,
        "age_seconds": None,
        "objects": {"good": 0, "stale": 0, "refused": 0},
        "held": ["shop/db"],
        "error": "gone",
        "error_since": "2026-01-02T03:03:56.000Z",
        "watches": [],
    }


def test_source_shows_each_of_its_watches(now: Any) -> None:
    """Each watch has its ages and counts; a watch that never received anything has its error."""
    minute = timedelta(minutes=1)
    pods = Watch("pods", "shop", now, now - minute, now - 5 * minute, 2, 40, {"timeout": 1, "gone": 2})
    smi = Watch("traffictargets.access.smi-spec.io", error="may not list them", error_since=now - minute)
    assert source("kubernetes", Freshness(watches=(pods, smi)), Counts(), now)["watches"] == [
        {
            "name": "pods",
            "namespace": "shop",
            "heard": "2026-01-02T03:04:05.000Z",
            "heard_age": "0 s",
            "heard_age_seconds": 0.0,
            "last_event": "2026-01-02T03:03:05.000Z",
            "event_age": "1 min",
            "event_age_seconds": 60.0,
            "last_list": "2026-01-02T02:59:05.000Z",
            "list_age": "5 min",
            "list_age_seconds": 300.0,
            "relists": 2,
            "events": 40,
            "errors": {"gone": 2, "timeout": 1},
            "error": None,
            "error_since": None,
        },
        {
            "name": "traffictargets.access.smi-spec.io",
            "namespace": "",
            "heard": None,
            "heard_age": None,
            "heard_age_seconds": None,
            "last_event": None,
            "event_age": None,
            "event_age_seconds": None,
            "last_list": None,
            "list_age": None,
            "list_age_seconds": None,
            "relists": 0,
            "events": 0,
            "errors": {},
            "error": "may not list them",
            "error_since": "2026-01-02T03:03:05.000Z",
        },
    ]
