"""Tests of two proxies with one identity: a temporary fault of one does not affect the other."""

from datetime import UTC, datetime, timedelta

from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from meshwright.sidecars.envoy.reasons import reason
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import LISTENER, Reference, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Nonce, Rejection, Response
from xds.stream_status import Variant

NODE = NodeKey("a.shop.default")
GROUP = GroupKey("shop")
START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, SECOND = 1, 2
BUSY = Rejection(13, "l: cannot bind '10.0.0.1:1': Address already in use")


def _empty(key: Reference) -> Resource | None:
    del key
    return None


def _listener(name: str = "l", version: str = "1") -> Resource:
    return Resource(LISTENER, ResourceName(name), Version(version), b"", ())


class Plane:
    """One identity with two streams, and the cache for both."""

    def __init__(self, *resources: Resource) -> None:
        self.seconds = 0.0
        self.quarantine = Quarantine(_empty, lambda _, text: reason(text), jitter=lambda: 0.0)
        self.cache = SnapshotCache()
        self.published = PublishedSnapshots()
        self.publish(*resources)

    def publish(self, *resources: Resource) -> None:
        """Compute other resources for the identity."""
        step = Step({GROUP: Snapshot.of(resources)}, {NODE: GROUP})
        self.published = step.after(self.published)
        self._serve(self.quarantine.after(step))

    def answer(self, stream: int, rejection: Rejection | None, *resources: Resource) -> None:
        """Answer a response on one stream."""
        response = Response(LISTENER, Version("v"), Nonce("1"), resources)
        moment = Moment(self.seconds, START)
        self._serve(
            self.quarantine.answered(NODE, response, rejection, lambda: moment, frozenset(), stream) or Step()
        )

    def wait(self, seconds: float) -> None:
        """Advance the clock, and offer again what is due."""
        self.seconds += seconds
        self._serve(self.quarantine.on_time(self.seconds) or Step())

    def close(self, stream: int) -> None:
        """End a stream."""
        self.quarantine.streams.closed(stream)
        self._serve(Step())

    def served(self, stream: int) -> dict[str, str]:
        """Return the listeners that a stream is served: names and versions."""
        snapshot = self.cache.snapshot(NODE, stream)
        return {} if snapshot is None else {str(k): str(v) for k, v in snapshot.versions(LISTENER).items()}

    def _serve(self, step: Step) -> None:
        for stream, (node, less) in self.quarantine.streams.take_changes().items():
            self.cache.lessen(node, stream, less)
        self.cache.publish_changes(step.snapshots, step.members)


def test_listener_with_a_port_in_use_is_withheld_from_one_stream() -> None:
    """The other proxy keeps the listener that it acknowledged, and the rejection is reported."""
    plane = Plane(_listener())
    plane.answer(FIRST, None, _listener())
    plane.answer(SECOND, BUSY, _listener())
    assert (plane.served(FIRST), plane.served(SECOND)) == ({"l": "1"}, {})
    assert plane.quarantine.findings.rejected_by(NODE) == ((LISTENER, "l"),)
    assert plane.quarantine.findings.counts() == {LISTENER: 1}


def test_malformed_listener_is_withheld_from_both_streams() -> None:
    """The content is the same for every proxy of an identity."""
    plane = Plane(_listener())
    plane.answer(SECOND, Rejection(13, "l: malformed"), _listener())
    assert (plane.served(FIRST), plane.served(SECOND)) == ({}, {})


def test_port_in_use_concerns_the_stream_and_content_concerns_the_identity() -> None:
    """Each listener of one response is judged by its own part of the message."""
    bound, wrong, fine = _listener("bound"), _listener("wrong"), _listener("fine")
    plane = Plane(bound, wrong, fine)
    said = "bound: cannot bind '10.0.0.1:1': Address already in use\nwrong: malformed\n"
    plane.answer(SECOND, Rejection(13, f"Error adding/updating listener(s) {said}"), bound, wrong, fine)
    assert plane.served(FIRST) == {"bound": "1", "fine": "1"}
    assert plane.served(SECOND) == {"fine": "1"}


def test_rejected_listener_is_offered_again_to_its_stream_after_a_pause() -> None:
    """The pauses are 10 and 20 seconds; the stream keeps the listener once it accepts it."""
    plane = Plane(_listener())
    plane.answer(SECOND, BUSY, _listener())
    plane.wait(9.9)
    assert plane.served(SECOND) == {}
    plane.wait(0.1)
    assert plane.served(SECOND) == {"l": "1"}
    plane.answer(SECOND, BUSY, _listener())
    assert (plane.served(FIRST), plane.served(SECOND)) == ({"l": "1"}, {})
    plane.wait(20.0)
    plane.answer(SECOND, None, _listener())
    assert plane.served(SECOND) == {"l": "1"}
    assert plane.quarantine.findings.rejected() == ()
    assert plane.quarantine.due() is None


def test_new_version_or_end_of_the_stream_ends_the_withholding() -> None:
    """Nothing is remembered of an ended stream."""
    plane = Plane(_listener())
    plane.answer(SECOND, BUSY, _listener())
    plane.publish(_listener(version="2"))
    assert plane.served(SECOND) == {"l": "2"}
    plane.answer(SECOND, BUSY, _listener(version="2"))
    assert (plane.served(FIRST), plane.served(SECOND)) == ({"l": "2"}, {"l": "1"})
    plane.close(SECOND)
    assert (plane.quarantine.findings.rejected(), plane.quarantine.decides(NODE)) == ((), False)


def test_retry_offers_the_listener_without_a_pause() -> None:
    """`meshwright proxy retry` must not wait."""
    plane = Plane(_listener())
    plane.answer(SECOND, BUSY, _listener())
    assert plane.quarantine.retry(NODE) == Step()
    assert plane.served(SECOND) == {"l": "1"}


def test_two_connections_are_two_proxies_after_a_while_or_with_a_collision() -> None:
    """A hot restart, or a dead connection that is detected late, is no second proxy."""
    now = START
    registry = ProxyRegistry(lambda: now)
    registry.opened(NODE, "ipv4:10.0.0.1:1", Variant.DELTA)
    registry.opened(NODE, "ipv4:10.0.0.1:1", Variant.SOTW)
    assert not registry.has_several(NODE)
    registry.opened(NODE, "ipv4:10.0.0.2:2", Variant.DELTA)
    assert registry.has_several(NODE)
    assert registry.shared() == ()
    assert [proxy.peers for proxy in registry.shared(lambda _: True)] == [
        ("ipv4:10.0.0.1:1", "ipv4:10.0.0.2:2")
    ]
    now = START + timedelta(minutes=2)
    assert [proxy.node for proxy in registry.shared()] == [NODE]
    (status,) = registry.statuses()
    assert status.peers == ("ipv4:10.0.0.1:1", "ipv4:10.0.0.2:2")
    registry.closed(NODE, "ipv4:10.0.0.2:2")
    assert (registry.shared(), registry.has_several(NODE)) == ((), False)
