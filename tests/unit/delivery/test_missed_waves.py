"""Tests that a wave follows whenever something is left to publish, although no source reports a change."""

import asyncio
from datetime import datetime
from pathlib import Path

import pytest

from meshwright.delivery import loop as loops
from meshwright.mesh.names import TrustDomain
from tests.meshes import values as a
from tests.tools.own_authority import own_authority
from tests.unit.delivery.loop_in_memory import Plane, node


def _mesh() -> tuple[object, ...]:
    return (
        a.route_group("all", a.match("any", "/.*")),
        *(a.service(name) for name in ("s0", "s1")),
        *(a.workload(name, f"10.0.1.{number}") for number, name in enumerate(("s0", "s1"), 1)),
        a.target("to-1", "s0", "s1", a.http("all")),
    )


async def _is_wave_due(plane: Plane) -> bool:
    try:
        async with asyncio.timeout(0):
            await plane.gathering.due()
    except TimeoutError:
        return False
    return True


async def test_roots_noticed_with_a_new_proxy_reach_the_proxies_served_before(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new proxy's certificate may be the first reason to look at the issuer, which trusts one more root.

    The certificates of the others stay as they are, so the root alone is the reason for a wave.
    """
    plane = Plane(tmp_path / "state", now, *_mesh())
    await plane.loop.wave()
    await plane.come("s0")
    before = plane.cache.snapshot(node("s0"))
    more = own_authority(tmp_path / "other", TrustDomain("cluster.local"), now).trust_bundle()
    both = plane.authority.trust_bundle() + more
    monkeypatch.setattr(plane.authority, "trust_bundle", lambda: both)
    await plane.come("s1")
    assert not plane.certificates.needs_work(now), "nothing else would bring a wave"
    assert await _is_wave_due(plane)
    await plane.loop.wave()
    assert plane.cache.snapshot(node("s0")) is not before


async def test_failed_wave_is_repeated_without_another_change(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed wave has used up the notification of its changes, and the reason may be over soon."""
    plane = Plane(tmp_path / "state", now, *_mesh())
    await plane.loop.wave()
    await plane.come("s0")
    before = plane.cache.snapshot(node("s0"))
    monkeypatch.setattr(loops, "AGAIN_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(plane.gathering, "look", _fails)
        await plane.change((a.target("more", "s1", "s0", a.http("all")),))
    assert [problem.code for problem in plane.loop.state.problems] == ["wave-failed"]
    async with asyncio.timeout(10):
        await plane.gathering.due()
    await plane.loop.wave()
    assert plane.loop.state.problems == ()
    assert plane.cache.snapshot(node("s0")) is not before


def _fails() -> None:
    raise RuntimeError("can't start new thread")
