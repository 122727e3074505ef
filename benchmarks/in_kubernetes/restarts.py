"""What it costs a control plane that its API server is killed and comes back: everything is listed again."""

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
"""Seconds after an API server's return in which every kind has been listed again."""


@dataclass(frozen=True, slots=True)
class Relist:
    """Everything is listed again, from the API server's death; CPU is without what idling costs.

    One endpoint event is in it, by which it is seen that the cluster is followed again: `followed_s` is from
    the API's being ready until that event's last ACK. `responses` are all that came, but that event's.
    """

    cpu_ms: float
    followed_s: float
    responses: int


def relist(held: RunningCluster, api: Api, served: MeasuredMesh, event: Change, number: int) -> Relist:
    """Kill the API server, start it again, and see what that costs until all is as it was."""
    plane, clients = served.plane, served.sidecars
    if event.concerned is None:
        raise BenchmarkError(f"nobody knows whom it concerns: {event.name}")
    concerned = served.concerned(event.concerned(served.services))
    settled(plane.cpu)
    clients.wait(0, 0)
    idle = idled(plane.cpu, AFTERWARDS)
    before, began = plane.cpu(), time.time()
    held.api.kill()
    held.api.again()
    api.close()  # what is written next goes over a connection of its own
    ready = time.time()
    unmoved = clients.wait(0, 1.0)
    event.write(served.source, number)
    moved = clients.wait(len(concerned), 0, LIMIT)
    time.sleep(max(0.0, ready + AFTERWARDS - time.time()))
    late = clients.wait(0, 0)
    spent = plane.cpu() - before - idle.share * (time.time() - began)
    came = len(unmoved.responses) + len(moved.responses) + len(late.responses)
    return Relist(
        round(spent * 1000, 1), round(moved.last_ack - ready, 2), came - len(concerned & moved.proxies)
    )
