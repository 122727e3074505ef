"""Tests of tallies and durations: their export equals that of Prometheus' counters and histograms."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from meshwright.admin.metrics.tallies import Durations, Tallies

BOUNDS = (0.001, 0.5, 10.0)


def _text(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def test_durations_are_exported_like_a_histogram() -> None:
    """The exported text equals that of a Prometheus histogram, for values below, at and above each bound."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    durations = Durations("waits_seconds", "How long.", BOUNDS, ours)
    histogram = Histogram("waits_seconds", "How long.", buckets=BOUNDS, registry=theirs)
    assert _text(ours) == _text(theirs)
    for seconds in (0.0, 0.001, 0.0011, 0.5, 3.0, 10.0, 11.0, 0.25):
        durations.observe(seconds)
        histogram.observe(seconds)
    assert _text(ours) == _text(theirs)
    assert list(ours._names_to_collectors) == list(theirs._names_to_collectors)


def test_tally_is_added_to_its_counter_once() -> None:
    """A counter shows the total at each reading, and repeated readings add nothing."""
    registry = CollectorRegistry()
    tallies = Tallies(registry)
    counter = Counter("sent", "Sent.", ["type"], registry=registry)
    one, other = tallies.tally(counter.labels("one")), tallies.tally(counter.labels("other"))
    shown = []
    for count in (3, 0, 4):
        one.total += count
        shown.append(registry.get_sample_value("sent_total", {"type": "one"}))
    other.total += 1
    assert shown == [3, 3, 7]
    assert registry.get_sample_value("sent_total", {"type": "other"}) == 1
