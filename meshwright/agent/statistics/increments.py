"""What was counted between two looks at a proxy. Pure."""

from collections.abc import Mapping

from meshwright.agent.statistics.statistics import Bin, Statistics

NOTHING = Statistics({}, {})


def since(before: Statistics, now: Statistics) -> Statistics:
    """Return what was counted since the look before; what has not changed is not in it.

    A number that is smaller than before is of an Envoy that was started anew: then all of it is new. An Envoy
    that has counted more by now than the one before it is taken for that one: the difference is told. What
    only goes up is asked of here: numbers that go down as well (`cx_active`) have no meaning in it.
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


def _of(numbers: Mapping[str, Mapping[str, Mapping[str, int]]], scope: str, of: str) -> Mapping[str, int]:
    return numbers.get(scope, {}).get(of, {})


def _of_bins(found: Statistics, scope: str, of: str) -> tuple[Bin, ...]:
    return found.times.get(scope, {}).get(of, ())


def _grown(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    found = {what: _increment(before.get(what, 0), count) for what, count in now.items()}
    return {what: count for what, count in found.items() if count}


def _more(before: tuple[Bin, ...], now: tuple[Bin, ...]) -> tuple[Bin, ...]:
    counted = {each.least: each.count for each in before}
    found = (Bin(each.least, each.width, _increment(counted.get(each.least, 0), each.count)) for each in now)
    return tuple(each for each in found if each.count)


def _increment(before: int, now: int) -> int:
    return now - before if now >= before else now
