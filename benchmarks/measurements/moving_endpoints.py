"""Moving endpoints: the latency of single moves, and the behaviour with constant moves of many."""

import itertools
import random
import time
from dataclasses import dataclass
from typing import Final

from benchmarks.measurements.change_cost import (
    GATHERING,
    LIMIT,
    MeasuredMesh,
    distribution,
    milliseconds,
    moved,
)
from benchmarks.meshes import generator as meshes
from benchmarks.processes.programs import BenchmarkError, Distribution

CHURNING: Final = 0.1
"""Share of the endpoints that move once a second during the churn."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Time in milliseconds from a move of an endpoint to each ACK, and to the last ACK."""

    proxies: int
    changes: int
    last_ack_ms: Distribution
    each_ack_ms: Distribution


def latency(served: MeasuredMesh, changes: int) -> Latency:
    """Move one endpoint after the other, at random times; wait for the ACKs of each move before the next."""
    # A fixed seed makes runs comparable. Random pauses keep moves from coinciding with the server's timers.
    chance = random.Random(1)
    numbers = [number for number in range(served.services) if number % meshes.SPLIT_EVERY]
    last: list[float] = []
    item: list[float] = []
    served.sidecars.wait(0, GATHERING)
    for count in range(changes):
        number = chance.choice(numbers)
        concerned = served.concerned(meshes.callers(number, served.services))
        time.sleep(chance.uniform(0, 0.3))
        began = time.time()
        served.source.move(number, 0, count)
        report = served.sidecars.wait(len(concerned), 0, LIMIT)
        # A wrong set of sidecars would make the times of the ACKs meaningless.
        if report.proxies != concerned:
            raise BenchmarkError(f"a move of service {number} reached {sorted(report.proxies)}")
        last.append((report.last_ack - began) * 1000)
        item.extend((one.acked - began) * 1000 for one in report.responses)
    return Latency(served.sidecars.connected, changes, distribution(last), distribution(item))


@dataclass(frozen=True, slots=True)
class Churn:
    """Results of constantly moving endpoints.

    `lag_ms` is the time from the last move to the last ACK, and `gap_ms` the longest time between two ACKs;
    `ack_ms` is the mean from event to ACK in the server's own metrics.
    """

    services: int
    seconds: float
    offered: float
    held: float
    lag_ms: float
    gap_ms: float
    ack_ms: float
    cpu_share: float
    responses: int
    size: int
    late_ms: float


def churn(served: MeasuredMesh, seconds: float) -> Churn:
    """Move endpoints, one for ten connected sidecars, each once a second, and return the results."""
    numbers = [number for number in range(served.services) if number % meshes.SPLIT_EVERY]
    moving = numbers[: max(1, round(served.sidecars.connected * CHURNING))]
    rate = len(moving)
    plane, before, began = served.plane, served.plane.metrics(), time.time()
    cpu = plane.cpu()
    late = last = 0.0
    for count in range(round(seconds * rate)):
        # Moves are spread evenly over each second; a late move does not delay the next ones.
        time.sleep(max(0.0, began + count / rate - time.time()))
        served.source.move(moving[count % rate], 0, count // rate)
        last = time.time()
        # Once a second, because the server reports the maximum of the last seconds.
        if count % rate == 0:
            late = max(late, plane.lateness())
    report = served.sidecars.wait(0, 1.0, LIMIT)
    spent = plane.cpu() - cpu
    acks = sorted(response.acked for response in report.responses)
    after = plane.metrics()
    answers = moved(before, after, "meshwright_event_to_ack_seconds_count")
    waited = moved(before, after, "meshwright_event_to_ack_seconds_sum")
    return Churn(
        served.services,
        round(last - began, 2),
        rate,
        round(seconds * rate / (report.last_ack - began), 1),
        milliseconds(report.last_ack - last),
        milliseconds(max((new - old for old, new in itertools.pairwise(acks)), default=0.0)),
        milliseconds(waited / answers if answers else 0.0),
        round(spent / (report.last_ack - began), 3),
        len(report.responses),
        report.size,
        milliseconds(max(late, plane.lateness())),
    )
