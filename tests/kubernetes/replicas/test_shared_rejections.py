"""Seconds until policy that a proxy rejects at one server is left out for the proxy at the others."""

from typing import Final

import pytest

from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.picky_proxies import picky_proxies, rejected_everywhere
from tests.kubernetes.replicas.rows import LONG
from tests.kubernetes.replicas.test_latencies import GOAL_SECONDS, SAMPLES, SLACK

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(900)]

PART: Final = 0.99
"""Part of the samples within the goal."""


async def test_rejections_at_one_server_hold_at_the_others(mesh: Mesh) -> None:
    """Counted from the last answer of the search until both other servers have sent the reduced route.

    Then the proxy moves to the last server, which never sends it the rejected policy.
    """
    proxies = await picky_proxies(mesh, SAMPLES)
    async with mesh.row("a rejection at one server, in force at the others", changes=True) as row:
        delays = [await rejected_everywhere(proxy, mesh) for proxy in proxies]
        times = sorted(delay.found for delay in delays)
        longest = max(delay.rejected for delay in delays)
        row.healed, row.note = times[-1], f"{_described(times)}; with the search {longest:.3f} s"
    assert _share(times, PART) <= GOAL_SECONDS * SLACK, times


def _described(times: list[float]) -> str:
    return (
        f"{len(times)} samples: median {_share(times, 0.5):.3f} s, p99 {_share(times, PART):.3f} s, "
        f"longest {times[-1]:.3f} s"
    )


def _share(times: list[float], part: float) -> float:
    """Return the time within which this part of the sorted samples is."""
    return times[min(int(part * len(times)), len(times) - 1)]
