"""Cost of a restarted API server for a control plane, which must list all objects again."""

import time
from dataclasses import dataclass
from typing import Final

from benchmarks.in_kubernetes.api import Api
from benchmarks.measurements.change_cost import LIMIT, MeasuredMesh
from benchmarks.meshes.changes import Change
from benchmarks.processes.programs import BenchmarkError
from benchmarks.processes.quiet import idled, settled
from tools.real_parts.cluster import RunningCluster

AFTERWARDS: Final = 15.0
"""Seconds after the restart in which every kind is listed again."""


@dataclass(frozen=True, slots=True)
class Relist:
    """Cost of one restart of the API server; CPU time is without the cost of idling.

    One endpoint event shows that the control plane follows the cluster again: `followed_s` is the time from a
    ready API to the last ACK of this event. `responses` counts all responses except those for the event.
    """

    cpu_ms: float
    followed_s: float
    responses: int


def relist(cluster: RunningCluster, api: Api, served: MeasuredMesh, event: Change, number: int) -> Relist:
    """Kill and restart the API server, and measure the control plane for AFTERWARDS seconds."""
    plane, clients = served.plane, served.sidecars
    if event.concerned is None:
        raise BenchmarkError(f"change {event.name} cannot be measured here: its field `concerned` is not set")
    concerned = served.concerned(event.concerned(served.services))
    settled(plane.cpu)
    clients.wait(0, 0)
    # Idling is measured for the same time as the restart, because its cost varies.
    idle = idled(plane.cpu, AFTERWARDS)
    before, began = plane.cpu(), time.time()
    cluster.api.kill()
    cluster.api.again()
    # The killed server has closed this connection.
    api.close()
    ready = time.time()
    unmoved = clients.wait(0, 1.0)
    event.write(served.source, number)
    moved = clients.wait(len(concerned), 0, LIMIT)
    # A control plane may list some kinds only later; their cost belongs to the restart.
    time.sleep(max(0.0, ready + AFTERWARDS - time.time()))
    late = clients.wait(0, 0)
    spent = plane.cpu() - before - idle.share * (time.time() - began)
    came = len(unmoved.responses) + len(moved.responses) + len(late.responses)
    return Relist(
        round(spent * 1000, 1), round(moved.last_ack - ready, 2), came - len(concerned & moved.proxies)
    )
