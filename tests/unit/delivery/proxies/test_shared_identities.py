"""Tests of shared identities: when several proxies with one identity are a problem."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from meshwright.delivery.proxies import shared_identities as sharing
from meshwright.delivery.proxies.registry import SHARED_AFTER, ProxyRegistry
from meshwright.delivery.proxies.shared_identities import SharedIdentities
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.sidecars.envoy.reasons import reason
from tests.meshes import values as a
from tests.tools.deadline import until
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import LISTENER, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response
from xds.stream_status import Variant

NODE = NodeKey("shop-1-uuid.shop.default")
START = datetime(2026, 1, 1, tzinfo=UTC)
ONE, OTHER = "ipv4:10.0.0.1:5", "ipv6:%5Bfd00::1%5D:6"
LATE = Version("1")
RESOURCE = Resource(LISTENER, ResourceName("l"), LATE, b"", ())
WORDS = {
    "port in use": "cannot bind '10.0.0.1:1': Address already in use",
    "no such address": "cannot bind '10.0.0.1:1': Cannot assign requested address",
    "out of memory": "cannot listen: Cannot allocate memory",
}


class Plane:
    """A registry, a quarantine, and the shared identities of one workload."""

    def __init__(self) -> None:
        self.now = START
        self.registry = ProxyRegistry(lambda: self.now)
        self.quarantine = Quarantine(lambda _: None, lambda _, text: reason(text), jitter=lambda: 0.0)
        self.shared = SharedIdentities(self.registry, self.quarantine)
        self.view = a.view(a.service("shop"), a.workload("shop-1", "10.0.0.1", app="shop"))
        group = GroupKey("shop")
        self.quarantine.after(Step({group: Snapshot.of((RESOURCE,))}, {NODE: group}))

    def reject(self, stream: int, said: str) -> None:
        """Reject the listener on one of several streams."""
        rejection = Rejection(13, f"l: {said}")
        response = Response(LISTENER, LATE, Nonce("1"), (RESOURCE,))
        moment = Moment(0.0, self.now)
        self.quarantine.answered(NODE, response, rejection, lambda: moment, frozenset(), stream)

    def names(self) -> list[str]:
        """Return the identities that are shared now."""
        return [proxy.node for proxy in self.shared.proxies()]


def _told(plane: Plane) -> Problem:
    (problem,) = plane.shared.problems(plane.view)
    return problem


@pytest.mark.parametrize("said", WORDS.values(), ids=WORDS)
def test_proxies_that_collide_are_reported_until_one_leaves(said: str) -> None:
    """A listener that cannot be bound suggests a second proxy, so both addresses are in a warning.

    One connection, or two without such an error, are no problem yet.
    """
    plane = Plane()
    plane.registry.opened(NODE, ONE, Variant.DELTA)
    assert plane.shared.problems(plane.view) == ()
    plane.registry.opened(NODE, OTHER, Variant.DELTA)
    assert plane.shared.problems(plane.view) == ()
    plane.reject(2, said)
    sourced = plane.view.sourced.values_unrecorded()[a.object_key(a.workload("shop-1", "10.0.0.1"))]
    assert _told(plane) == Problem(
        code="identity-shared",
        severity=Severity.WARNING,
        origin=sourced.origin,
        key=sourced.key,
        field="proxy",
        value=NODE,
        expected="is the identity of several connected proxies (10.0.0.1:5 and [fd00::1]:6), as of a cloned "
        "machine or an agent started twice; stop all but one, or issue a certificate with a UUID of its own "
        "to each",
    )
    plane.registry.closed(NODE, ONE)
    assert (plane.shared.problems(plane.view), plane.names()) == ((), [])


def test_proxies_that_do_not_collide_are_reported_after_a_while() -> None:
    """On separate machines no port collides; the hot restart of one proxy is shorter than SHARED_AFTER."""
    plane = Plane()
    for item in (ONE, OTHER):
        plane.registry.opened(NODE, item, Variant.SOTW)
    plane.now = START + SHARED_AFTER - timedelta(seconds=1)
    assert plane.names() == []
    plane.now = START + SHARED_AFTER
    assert plane.names() == [NODE]


def test_rejected_content_is_no_sign_of_a_shared_identity() -> None:
    """Every Envoy rejects malformed content, so the rejection does not prove a second proxy."""
    plane = Plane()
    for item in (ONE, OTHER):
        plane.registry.opened(NODE, item, Variant.SOTW)
    plane.reject(2, "malformed")
    assert plane.names() == []


def test_shared_identity_without_a_workload_is_a_problem_of_the_proxies() -> None:
    """There is no object for the problem, so its origin is `proxies`."""
    plane = Plane()
    for item in (ONE, OTHER):
        plane.registry.opened(NODE, item, Variant.DELTA)
    plane.now = START + SHARED_AFTER
    (problem,) = plane.shared.problems(a.view())
    assert (problem.key, problem.origin, problem.value) == (None, FromSource("proxies"), NODE)


async def test_watcher_is_notified_of_the_start_and_end_of_a_shared_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no notification in between, because each one causes a wave."""
    monkeypatch.setattr(sharing, "LOOK_SECONDS", 0.0)
    plane, heard = Plane(), list[list[str]]()
    task = asyncio.create_task(plane.shared.watching(lambda: heard.append(plane.names())))
    await asyncio.sleep(0)  # the watcher first reads the current state
    for item in (ONE, OTHER):
        plane.registry.opened(NODE, item, Variant.DELTA)
    plane.reject(2, WORDS["port in use"])
    await until(lambda: heard == [[NODE]])
    plane.registry.closed(NODE, OTHER)
    await until(lambda: heard == [[NODE], []])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
