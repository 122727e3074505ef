"""Difference between two readings of a proxy's counters. Pure."""

from collections.abc import Mapping

from meshwright.agent.statistics.statistics import Bin, Statistics

NOTHING = Statistics({}, {})


def since(before: Statistics, now: Statistics) -> Statistics:
    """Return the increments since an earlier reading, without unchanged counters.

    A smaller number is from a restarted Envoy, and counts in full. For example, 40 after 100 gives 40. A
    restarted Envoy with a larger number than before cannot be recognised, so the difference is used. The
    result is meaningless for gauges such as `cx_active`.
    """
    numbers = {
        scope: {
            of: grown
            for of, counts in every.items()
            if (grown := _grown(_of(before.numbers, scope, of), counts))
        }
        for scope, every in now.numbers.items()
    }
    times = {
        scope: {of: more for of, bins in every.items() if (more := _more(_of_bins(before, scope, of), bins))}
        for scope, every in now.times.items()
    }
    return Statistics(numbers, times)


def _of(numbers: Mapping[str, Mapping[str, Mapping[str, int]]], scope: str, key: str) -> Mapping[str, int]:
    return numbers.get(scope, {}).get(key, {})


def _of_bins(statistics: Statistics, scope: str, key: str) -> tuple[Bin, ...]:
    return statistics.times.get(scope, {}).get(key, ())


def _grown(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    result = {what: _increment(before.get(what, 0), count) for what, count in now.items()}
    return {what: count for what, count in result.items() if count}


def _more(before: tuple[Bin, ...], now: tuple[Bin, ...]) -> tuple[Bin, ...]:
    counted = {item.least: item.count for item in before}
    result = (Bin(item.least, item.width, _increment(counted.get(item.least, 0), item.count)) for item in now)
    return tuple(item for item in result if item.count)


def _increment(before: int, now: int) -> int:
    return now - before if now >= before else now
