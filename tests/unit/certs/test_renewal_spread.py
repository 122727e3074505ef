"""Test that certificates issued together are not renewed together: 2000 services in simulated time."""

import heapq
import itertools
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from certs.manager import jittered
from certs.renewal import renew_at

START = datetime(2031, 1, 1, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
BACK = timedelta(seconds=60)
SERVICES = 2000


@dataclass(frozen=True, slots=True)
class Life:
    """The validity of a certificate."""

    serial: str
    not_before: datetime
    not_after: datetime


def _renewals(drawn: Random, *, issuer_jitters: bool) -> Counter[int]:
    """Return the number of renewals in each minute of the day after all were issued within one minute."""

    def issued(at: datetime) -> Life:
        lifetime = jittered(DAY, drawn.uniform(-1, 1)) if issuer_jitters else DAY * 0.8
        return Life(f"{drawn.getrandbits(128):x}", at - BACK, at + lifetime)

    first = (issued(START + MINUTE * drawn.random()) for _ in range(SERVICES))
    numbers = itertools.count()
    due = [(renew_at(life), next(numbers)) for life in first]
    heapq.heapify(due)
    result: Counter[int] = Counter()
    while due[0][0] < START + DAY:
        moment, _ = heapq.heappop(due)
        result[int((moment - START) / MINUTE)] += 1
        heapq.heappush(due, (renew_at(issued(moment)), next(numbers)))
    return result


@pytest.mark.parametrize("issuer_jitters", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_renewals_of_2000_services_started_within_a_minute_spread_over_hours(
    seed: int, issuer_jitters: bool
) -> None:
    """At most 2 % are renewed within one minute, and 20 % within 15 minutes.

    This is also true if an issuer shortens all lives to one length.
    """
    drawn = Random(seed)  # noqa: S311 - a simulation
    result = _renewals(drawn, issuer_jitters=issuer_jitters)
    quarters = Counter({number: sum(result[number + n] for n in range(15)) for number in range(24 * 60)})
    assert sum(result.values()) >= SERVICES
    assert max(result.values()) <= SERVICES / 50
    assert max(quarters.values()) <= SERVICES / 5
