"""What the library itself holds and costs: a bare grpc.aio server with as many mTLS streams."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.credentials import issue
from benchmarks.fanout import BARE_MODULE
from benchmarks.processes import memory
from benchmarks.programs import Checkout, build, loading, serving

NAMES: Final = 5
"""Assignments of each stream: as many as a sidecar of the benchmark's mesh has."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The bare server with all its streams: MiB resident, and CPU seconds to connect them."""

    streams: int
    memory: float
    cpu: float


def floor(folder: Path, streams: int) -> Floor:
    """Connect streams to a bare server, and look at it."""
    tls = folder / "floor"
    tls.mkdir()
    issue(tls)
    generator = build("loadgen")
    command = (*Checkout().module(BARE_MODULE), "--services", str(NAMES), "--endpoints", "2")
    fleet = ("-proxies", str(streams), "-names", str(NAMES))
    with serving(command, tls) as server, loading(generator, server, tls, *fleet) as load:
        before = server.cpu_seconds()
        load.do("connect")
        time.sleep(1)
        return Floor(streams, memory(server.process.pid).resident, round(server.cpu_seconds() - before, 3))
