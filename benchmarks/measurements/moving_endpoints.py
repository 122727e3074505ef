"""Endpoints that move: how soon single moves are acknowledged, and what happens when many never rest."""

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
"""The share of the endpoints that move, each once a second, while the mesh is churned."""


@dataclass(frozen=True, slots=True)
class Latency:
    """From a change to the last ACK of it, at some number of proxies."""

    proxies: int
    changes: int
    last_ack_ms: Distribution
    each_ack_ms: Distribution


def latency(served: MeasuredMesh, changes: int) -> Latency:
    """Move one endpoint after the other, at uneven times; each waits for the ACKs of the one before."""
    chance = random.Random(1)
    numbers = [number for number in range(served.services) if number % meshes.SPLIT_EVERY]
    last: list[float] = []
    each: list[float] = []
    served.sidecars.wait(0, GATHERING)
    for count in range(changes):
        number = chance.choice(numbers)
        concerned = served.concerned(meshes.callers(number, served.services))
        time.sleep(chance.uniform(0, 0.3))
        began = time.time()
        served.source.move(number, 0, count)
        report = served.sidecars.wait(len(concerned), 0, LIMIT)
        if report.proxies != concerned:
            raise BenchmarkError(f"a move of service {number} reached {sorted(report.proxies)}")
        last.append((report.last_ack - began) * 1000)
        each.extend((one.acked - began) * 1000 for one in report.responses)
    return Latency(served.sidecars.connected, changes, distribution(last), distribution(each))


@dataclass(frozen=True, slots=True)
class Churn:
    """What became of endpoints that moved all the time.

    `lag_ms` is from the last move to the last ACK, `gap_ms` the longest time in which nobody got anything;
    `ack_ms` is the server's own mean from event to ACK.
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
    """Move a share of the endpoints, each once a second."""
    numbers = [number for number in range(served.services) if number % meshes.SPLIT_EVERY]
    moving = numbers[: max(1, round(served.sidecars.connected * CHURNING))]
    rate = len(moving)
    plane, before, began = served.plane, served.plane.metrics(), time.time()
    cpu = plane.cpu()
    late = last = 0.0
    for count in range(round(seconds * rate)):
        time.sleep(max(0.0, began + count / rate - time.time()))
        served.source.move(moving[count % rate], 0, count // rate)
        last = time.time()
        if count % rate == 0:
            late = max(late, plane.lateness())
    report = served.sidecars.wait(0, 1.0, LIMIT)
    spent = plane.cpu() - cpu
    acks = sorted(each.acked for each in report.responses)
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
