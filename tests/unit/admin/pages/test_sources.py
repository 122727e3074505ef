"""What the pages say of sources, whole values."""

from datetime import timedelta
from typing import Any

from admin.pages.sources import source, sources
from providers.contract import Counts, Freshness


def test_a_source_shows_its_ages_and_what_it_holds(reading: Any, now: Any) -> None:
    """Since its last full read, and since the last change."""
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
            }
        ]
    }


def test_a_source_that_cannot_be_read_says_why_and_since_when(now: Any) -> None:
    """And what is held back; what never happened has no age."""
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
    }
