"""Envoy's histograms as Prometheus has them: seconds, and few buckets. Pure."""

from collections.abc import Iterable

from meshwright.agent.statistics.exposition import Labels, Sample
from meshwright.agent.statistics.statistics import Bin
from meshwright.traffic.statistics import BOUNDS_MS


def histogram(labels: Labels, bins: Iterable[Bin]) -> tuple[Sample, ...]:
    """Return the samples of a histogram; a time of just a bound is in the bucket above, as Envoy has it."""
    found = tuple(bins)
    below = ((bound, sum(each.count for each in found if each.least < bound)) for bound in BOUNDS_MS)
    buckets = (((*labels, ("le", f"{bound / 1000:g}")), count) for bound, count in below)
    every = (*labels, ("le", "+Inf")), sum(each.count for each in found)
    return (*(Sample(at, count, "_bucket") for at, count in (*buckets, every)), *summary(labels, found))


def summary(labels: Labels, bins: Iterable[Bin]) -> tuple[Sample, ...]:
    """Return sum and count; of what is in a bin, its middle is taken for the time."""
    found = tuple(bins)
    total = sum((each.least + each.width / 2) * each.count for each in found) / 1000
    return Sample(labels, total, "_sum"), Sample(labels, sum(each.count for each in found), "_count")
