"""Tests of the push history: what each response changed, its causes, and its answer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.delivery.history import history, versions
from meshwright.delivery.history.causes import Triggers, causing
from meshwright.delivery.history.history import PUSHES, Delays, PushHistory
from meshwright.delivery.history.old_resources import BYTES
from meshwright.delivery.history.push import Answer, Push, Trigger
from meshwright.delivery.history.record import Record
from meshwright.delivery.history.versions import NOTHING_HELD, ClientVersions, Content, VersionChanges
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.delivery.wave import Cause, Change, Wave
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.values.picture import Picture
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    ROUTE,
    SECRET,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.resources.versions import NO_VERSIONS, Versions
from xds.protocol.wire import Nonce, Rejection, Response
from xds.stream_status import Variant

NODE, OTHER = NodeKey("a.store.shop"), NodeKey("b.store.shop")
GROUP = GroupKey("g")
DATE = datetime(2026, 1, 2, tzinfo=UTC)
A, B, C = (ResourceName(name) for name in "abc")


def resource(name: str, version: str = "1", type_url: TypeUrl = ROUTE) -> Resource:
    """Return a resource whose body is its name and version."""
    body = f"{name}{version}".encode()
    return Resource(type_url, ResourceName(name), Version(version), body, secret=type_url == SECRET)


class Mesh:
    """A cache with one group of two proxies, and its push history."""

    def __init__(self) -> None:
        self.cache = SnapshotCache()
        self.registry = ProxyRegistry(lambda: DATE)
        self.history = PushHistory(self.cache, self.registry.proxy)
        self.waves = 0
        self.nonces = 0

    def publish(self, *resources: Resource, moved: bool = False, since: float = 0.0) -> Wave:
        """Publish the group's resources as a wave does; with `moved`, its proxies join the group now."""
        members = dict.fromkeys((NODE, OTHER), GROUP) if moved else {}
        snapshot = Snapshot.of(resources)
        step = Step({GROUP: snapshot}, members)
        replaced = self._publish(step)
        self.waves += 1
        causes = (Cause(TRAFFIC_TARGET, "shop/t", "t.yaml:1 (document 1)", Change.CHANGED),)
        wave = Wave(self.waves, causes, 0, since, since, DATE)
        self.history.published(wave, step, replaced)
        return wave

    def withhold(self, *resources: Resource) -> Wave:
        """Publish resources for the first proxy alone, in a group of its own."""
        group = GroupKey("g|withheld")
        step = Step({group: Snapshot.of(resources)}, {NODE: group})
        replaced = self._publish(step)
        self.waves += 1
        wave = Wave(self.waves, (), 0, 0.0, 0.0, DATE)
        self.history.published(wave, step, replaced)
        return wave

    def move(
        self, snapshots: dict[GroupKey, Snapshot | None], members: dict[NodeKey, GroupKey | None]
    ) -> None:
        """Publish groups, and move proxies to them."""
        step = Step(snapshots, members)
        self.history.published(Wave(0, (), 0, 0.0, 0.0, DATE), step, self._publish(step))

    def _publish(self, step: Step) -> dict[GroupKey, Snapshot]:
        replaced = dict(self.cache.snapshots())
        self.cache.publish_changes(step.snapshots, step.members)
        return replaced

    def send(
        self,
        *resources: Resource,
        node: NodeKey = NODE,
        type_url: TypeUrl = ROUTE,
        removed: tuple[ResourceName, ...] = (),
        now: float = 0.0,
    ) -> Response:
        """Send a proxy a response with these resources."""
        self.nonces += 1
        snapshot = self.cache.snapshot(node)
        there = None if snapshot is None else snapshot.resources(type_url)
        table = there if there and resources == there.ordered else None
        response = Response(type_url, Version("v"), Nonce(str(self.nonces)), resources, removed, table=table)
        self.history.sent(node, response, 100, now)
        return response

    def record(self, node: NodeKey) -> Record:
        """Return the remembered pushes of a proxy."""
        pushes = self.registry.proxy(node).pushes
        assert pushes is not None
        return pushes

    def last(self, node: NodeKey = NODE, now: float = 0.0) -> Push:
        """Return a proxy's newest push."""
        return self.history.pushes(node, now, DATE)[0]


@pytest.fixture
def mesh() -> Mesh:
    """Return a mesh whose proxy is connected to a group with the routes a and b."""
    made = Mesh()
    made.publish(resource("a"), resource("b"), moved=True)
    made.history.opened(NODE, Variant.DELTA, 0.0)
    return made


def _news(push: Push) -> tuple[Any, ...]:
    return (push.added, push.changed, push.removed, push.again)


def test_stream_opened_between_two_parts_of_a_wave_has_the_wave_as_a_cause(mesh: Mesh) -> None:
    """The second part of the wave is as new to this stream as to all others of its group."""
    mesh.withhold(resource("a", "2"))
    mesh.history.opened(OTHER, Variant.DELTA, 1.0)
    mesh.send(resource("a"), resource("b"), node=OTHER)
    mesh.waves -= 1
    wave = mesh.publish(resource("a", "3"), resource("b"))
    mesh.send(resource("a", "3"), node=OTHER)
    assert mesh.last(OTHER).waves == (wave,)
    assert mesh.last(OTHER).trigger is Trigger.CHANGE


def test_equal_deliveries_to_two_proxies_are_one_object(mesh: Mesh) -> None:
    """The first proxy gets responses of two types before the other gets the same ones."""
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    a, c = resource("a"), resource("c", type_url=CLUSTER)
    for node in (NODE, OTHER):
        mesh.send(a, node=node)
        mesh.send(c, node=node, type_url=CLUSTER)
    one, other = (mesh.record(node) for node in (NODE, OTHER))
    assert [id(push.delivery) for push in one.pushes] == [id(push.delivery) for push in other.pushes]
    assert len({id(push.delivery) for push in one.pushes}) == 2


def test_move_to_a_group_is_no_cause_of_a_later_push(mesh: Mesh) -> None:
    """A proxy that held its routes over a restart is sent none when it joins its group.

    Routes that are sent later have only the later wave as a cause.
    """
    mesh.publish(resource("a"), resource("b"), moved=True, since=100.0)
    later = mesh.publish(resource("a", "2"), resource("b"), since=444.0)
    response = Response(ROUTE, Version("v"), Nonce("n"), (resource("a", "2"),))
    assert mesh.history.sent(NODE, response, 100, 445.0) == Delays(1.0, None)
    assert mesh.last().waves == (later,)


def test_push_after_a_move_and_a_later_wave_has_both_as_causes(mesh: Mesh) -> None:
    """In one response for both, the move changed what the later wave did not."""
    first = mesh.publish(resource("a", "2"), resource("b", "2"), moved=True)
    later = mesh.publish(resource("a", "3"), resource("b", "2"))
    mesh.send(resource("a", "3"), resource("b", "2"))
    assert mesh.last().waves == (later, first)


def test_push_is_remembered_with_its_trigger_content_and_waiting_time(mesh: Mesh) -> None:
    """A proxy without a connection has no pushes."""
    mesh.send(resource("a"), resource("b"), now=10.0)
    assert mesh.history.pushes(NODE, 12.5, DATE) == (
        Push(
            at=DATE - timedelta(seconds=2.5),
            trigger=Trigger.SUBSCRIBED,
            waves=(),
            type_url=ROUTE,
            protocol=Variant.DELTA,
            nonce=Nonce("1"),
            version=Version("v"),
            added=(A, B),
            changed=(),
            removed=(),
            again=0,
            size=100,
            answer=Answer.PENDING,
            seconds=2.5,
            since_event=None,
            rejection=None,
        ),
    )
    assert mesh.history.pushes(OTHER, 12.5, DATE) == ()


def test_push_lists_added_changed_and_removed_resources(mesh: Mesh) -> None:
    """Changes have both versions; resources sent again are counted, and unknown removals are left out."""
    mesh.send(resource("a"), resource("b"))
    mesh.send(resource("a", "2"), resource("b"), resource("c"), removed=(ResourceName("never"),))
    assert _news(mesh.last()) == ((C,), ((A, Version("1"), Version("2")),), (), 1)
    mesh.send(removed=(B,))
    assert _news(mesh.last()) == ((), (), (B,), 0)


def test_resource_missing_from_a_sotw_response_is_removed_for_clusters_only(
    mesh: Mesh,
) -> None:
    """A state-of-the-world response lists all clusters, but of routes only the changed ones."""
    mesh.history.opened(NODE, Variant.SOTW, 1.0)
    for kind, gone in ((CLUSTER, (B,)), (ROUTE, ())):
        mesh.send(resource("a", "1", kind), resource("b", "1", kind), type_url=kind)
        mesh.send(resource("a", "2", kind), type_url=kind)
        assert _news(mesh.last()) == ((), ((A, Version("1"), Version("2")),), gone, 0)


def test_new_sotw_stream_holds_nothing_and_new_delta_stream_keeps_versions(mesh: Mesh) -> None:
    """A delta client names the versions that it holds, and is sent only the rest."""
    mesh.send(resource("a"))
    mesh.history.closed(NODE, 0.0)
    mesh.history.opened(NODE, Variant.DELTA, 1.0)
    mesh.send(resource("a", "2"))
    assert (mesh.last().trigger, mesh.last().changed) == (
        Trigger.RECONNECTED,
        ((A, Version("1"), Version("2")),),
    )
    mesh.history.opened(NODE, Variant.SOTW, 2.0)
    mesh.send(resource("a", "2"))
    assert (mesh.last().trigger, mesh.last().added) == (Trigger.RECONNECTED, (A,))
    mesh.send(resource("a", "2"))
    assert mesh.last().trigger is Trigger.SUBSCRIBED


def test_cause_of_a_push_is_the_wave_that_changed_its_resources(mesh: Mesh) -> None:
    """A wave that changed another resource, or preceded the stream, is no cause."""
    mesh.send(resource("a"), resource("b"))
    assert mesh.last().waves == ()
    wave = mesh.publish(resource("a", "2"), resource("b"))
    mesh.send(resource("b"))
    assert (mesh.last().trigger, mesh.last().waves) == (Trigger.SUBSCRIBED, ())
    mesh.send(resource("a", "2"))
    assert (mesh.last().trigger, mesh.last().waves) == (Trigger.CHANGE, (wave,))


def test_push_to_a_slow_client_has_several_waves_as_causes(mesh: Mesh) -> None:
    """All waves whose changes were not yet sent are causes, newest first."""
    mesh.send(resource("a"), resource("b"))
    first = mesh.publish(resource("a", "2"), resource("b"))
    second = mesh.publish(resource("a", "2"), resource("b", "2"))
    mesh.send(resource("a", "2"), resource("b", "2"))
    assert mesh.last().waves == (second, first)


def test_resource_that_is_sent_again_has_no_wave_as_a_cause(mesh: Mesh) -> None:
    """The client had it before. A removal after a change has the wave of that change as its cause."""
    mesh.send(resource("a"), resource("b"))
    wave = mesh.publish(resource("a", "2"))
    mesh.send(resource("a", "2"))
    mesh.send(resource("a", "2"))
    assert (mesh.last().trigger, mesh.last().again) == (Trigger.SUBSCRIBED, 1)
    mesh.send(removed=(B,))
    assert mesh.last().waves == (wave,)


def test_endpoints_sent_with_their_changed_cluster_have_its_wave_as_a_cause(mesh: Mesh) -> None:
    """Rule O4 sends them again although they are unchanged."""
    same = resource("a", "1", ENDPOINT)
    mesh.publish(resource("a", "1", CLUSTER), same)
    mesh.send(resource("a", "1", CLUSTER), type_url=CLUSTER)
    mesh.send(same, type_url=ENDPOINT)
    wave = mesh.publish(resource("a", "2", CLUSTER), same)
    mesh.send(same, type_url=ENDPOINT)
    assert (mesh.last().waves, mesh.last().again) == ((wave,), 1)


def test_push_to_a_proxy_that_joins_a_group_has_that_wave_as_a_cause() -> None:
    """The proxy was connected before its workload was known."""
    mesh = Mesh()
    mesh.history.opened(NODE, Variant.DELTA, 0.0)
    wave = mesh.publish(resource("a"), moved=True)
    mesh.send(resource("a"))
    assert mesh.last().waves == (wave,)


def test_answers_are_remembered_with_their_duration(mesh: Mesh) -> None:
    """An ACK returns the seconds since the event for the metrics; a NACK returns no delays."""
    mesh.publish(resource("a", "2"), resource("b"), since=10.0)
    good = mesh.send(resource("a", "2"), now=10.5)
    assert mesh.last().since_event == 0.5
    assert mesh.history.answered(NODE, good, None, 11.0) == Delays(None, 1.0)
    assert (mesh.last().answer, mesh.last().seconds) == (Answer.ACK, 0.5)
    bad = mesh.send(resource("a", "3"), now=12.0)
    assert mesh.history.answered(NODE, bad, Rejection(3, "no"), 12.25) == Delays()
    assert (mesh.last().answer, mesh.last().seconds, mesh.last().rejection) == (
        Answer.NACK,
        0.25,
        Rejection(3, "no"),
    )
    mesh.history.answered(NODE, replace(bad), None, 13.0)  # of another stream, with the same nonce
    assert mesh.last().answer is Answer.NACK


def test_answer_to_an_unknown_response_is_ignored(mesh: Mesh) -> None:
    """A client may answer a nonce that it was never sent."""
    sent = mesh.send(resource("a"))
    assert mesh.history.answered(NODE, replace(sent, nonce=Nonce("9")), None, 10.5) == Delays()
    assert mesh.last().answer is Answer.PENDING


def test_push_after_a_nack_has_the_withholding_wave_as_its_only_cause(mesh: Mesh) -> None:
    """The last good version is published between the NACK and the push."""
    mesh.send(resource("a"), resource("b"))
    bad = mesh.publish(resource("a", "2"), resource("b"))
    rejected = mesh.send(resource("a", "2"))
    mesh.history.answered(NODE, rejected, Rejection(3, "no"), 1.0)
    good = mesh.withhold(resource("a"), resource("b"))
    assert (mesh.last().answer, mesh.last().waves) == (Answer.NACK, (bad,))
    mesh.send(resource("a"))
    assert mesh.last().waves == (good,)


def test_age_of_the_oldest_unanswered_response_is_reported(mesh: Mesh) -> None:
    """A response counts until its answer or the end of its stream."""
    assert mesh.history.unanswered_age(5.0) == 0.0
    first = mesh.send(resource("a"), now=1.0)
    mesh.send(resource("b"), now=2.0)
    assert mesh.history.unanswered_age(5.0) == 4.0
    mesh.history.answered(NODE, first, None, 5.0)
    assert mesh.history.unanswered_age(5.0) == 3.0
    mesh.history.closed(NODE, 0.0)
    assert mesh.history.unanswered_age(5.0) == 0.0
    assert mesh.last().answer is Answer.ENDED


def test_newer_sotw_response_overtakes_an_older_one(mesh: Mesh) -> None:
    """A late answer to the overtaken response is recorded all the same."""
    mesh.history.opened(NODE, Variant.SOTW, 1.0)
    first = mesh.send(resource("a"), now=1.0)
    mesh.send(resource("a", "2"), now=2.0)
    assert [push.answer for push in mesh.history.pushes(NODE, 2.0, DATE)] == [
        Answer.PENDING,
        Answer.OVERTAKEN,
    ]
    assert mesh.history.unanswered_age(3.0) == 1.0
    mesh.history.answered(NODE, first, Rejection(3, "no"), 3.0)
    assert mesh.history.pushes(NODE, 3.0, DATE)[1].answer is Answer.NACK


def test_number_of_remembered_pushes_is_limited(mesh: Mesh) -> None:
    """The oldest pushes are dropped first, and all of them with their proxy in the registry."""
    for _ in range(PUSHES + 3):
        mesh.send(resource("a"))
    shown = mesh.history.pushes(NODE, 0.0, DATE)
    assert [push.nonce for push in shown] == [str(number) for number in range(PUSHES + 3, 3, -1)]
    mesh.registry.follow(Picture())
    assert mesh.history.pushes(NODE, 0.0, DATE) == ()
    mesh.history.closed(NODE, 0.0)
    assert mesh.history.sent(NODE, mesh.send(resource("a")), 1, 0.0) == Delays()


def test_number_of_proxies_with_remembered_pushes_is_limited(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit, the proxy that connected first loses its pushes and open answers."""
    monkeypatch.setattr("meshwright.delivery.history.history.PROXIES", 2)
    mesh.send(resource("a"))
    mesh.history.opened(OTHER, Variant.DELTA, 1.0)
    mesh.history.opened(NodeKey("c.store.shop"), Variant.DELTA, 2.0)
    assert mesh.history.pushes(NODE, 3.0, DATE) == ()
    assert mesh.history.unanswered_age(3.0) == 0.0
    assert mesh.registry.find(NODE) is not None


def test_replaced_versions_are_kept_except_secrets(mesh: Mesh) -> None:
    """Only a version that is no longer served is kept; a secret has a private key."""
    old = resource("a")
    mesh.publish(old, resource("s", "1", SECRET))
    mesh.publish(resource("a", "2"), resource("s", "2", SECRET))
    assert mesh.history.replaced(ROUTE, A, Version("1")) is old
    assert mesh.history.replaced(ROUTE, A, Version("2")) is None
    assert mesh.history.replaced(SECRET, ResourceName("s"), Version("1")) is None


def test_rejected_version_of_one_proxy_is_kept(mesh: Mesh) -> None:
    """Its group still has the version, but the proxy has another one, or none, in its place."""
    mesh.send(resource("a"), resource("b"))
    rejected = (resource("a", "2"), resource("b", "2"), resource("s", "2", SECRET))
    mesh.publish(*rejected)
    response = mesh.send(*rejected[:2])
    mesh.history.answered(NODE, response, Rejection(13, "no"), 0.0)
    mesh.withhold(resource("a"), resource("s", "1", SECRET))
    mesh.send(resource("a"), removed=(B,))
    (rejection, good) = mesh.history.pushes(NODE, 0.0, DATE)[1::-1]
    assert (rejection.changed, good.changed) == (((A, "1", "2"), (B, "1", "2")), ((A, "2", "1"),))
    kept = {name: mesh.history.replaced(ROUTE, name, Version("2")) for name in (A, B)}
    assert kept == {A: rejected[0], B: rejected[1]}
    assert mesh.history.replaced(SECRET, ResourceName("s"), Version("2")) is None
    mesh.publish(resource("a", "3"), moved=True)  # the proxy leaves its own group for the next version
    assert mesh.history.replaced(ROUTE, A, Version("1")) == resource("a")


def test_version_left_behind_by_a_move_is_kept_for_a_connected_proxy(mesh: Mesh) -> None:
    """This holds even if the old group is removed. For disconnected proxies no version is kept."""
    mesh.send(resource("a"), resource("b"))
    other, step = GroupKey("h"), Snapshot.of([resource("a", "2"), resource("b")])
    mesh.move({other: step, GROUP: None}, dict.fromkeys((NODE, OTHER), other))
    assert mesh.history.replaced(ROUTE, A, Version("1")) == resource("a")
    assert mesh.history.replaced(ROUTE, B, Version("1")) is None, "it has that one still"
    mesh.history.closed(NODE, 1.0)
    mesh.move({GROUP: Snapshot.of([resource("a", "3")]), other: None}, dict.fromkeys((NODE, OTHER), GROUP))
    assert mesh.history.replaced(ROUTE, A, Version("2")) is None


def test_size_of_kept_versions_is_limited(mesh: Mesh) -> None:
    """The oldest are dropped first, so that a proxy that rejects everything uses limited memory."""
    size = 200_000
    for version in range(2, 102):
        bad = replace(resource("a", str(version)), kept=bytes(size))
        mesh.publish(bad, moved=True)
        mesh.history.answered(NODE, mesh.send(bad), Rejection(13, "no"), 0.0)
        mesh.withhold(resource("a"))
        mesh.send(resource("a"))
    kept = [
        number
        for number in range(2, 102)
        if mesh.history.replaced(ROUTE, A, Version(str(number))) is not None
    ]
    assert 0 < sum(size for _ in kept) <= BYTES
    assert kept == list(range(102 - len(kept), 102))


def test_proxies_of_a_group_share_content_and_held_versions(mesh: Mesh) -> None:
    """The difference is computed once, whatever the number of proxies."""
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    same = (resource("a"), resource("b"))
    mesh.send(*same)
    mesh.send(*same, node=OTHER)
    proxies = {node: mesh.record(node) for node in (NODE, OTHER)}
    one, other = (proxies[node].pushes[0].delivery for node in (NODE, OTHER))
    assert one is other
    assert proxies[NODE].types[ROUTE].client_versions is proxies[OTHER].types[ROUTE].client_versions


def test_old_content_drops_what_it_keeps_for_further_proxies(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content is recognised for a while, because other proxies may be sent the same.

    The push itself still lists its changes.
    """
    monkeypatch.setattr(versions, "CONTENTS", 1)
    mesh.publish(resource("a", "2"))
    mesh.send(resource("a", "2"))
    content = mesh.record(NODE).pushes[0].delivery.content
    assert None not in (content.delivery, content.first, content.last)
    mesh.send(resource("b"))
    assert (content.delivery, content.first, content.last, content.cause) == (None,) * 4
    assert mesh.history.pushes(NODE, 0.0, DATE)[-1].added == (A,)


def test_changes_of_a_client_without_versions_are_unaffected_by_other_clients() -> None:
    """Another client held an older version of the same content, so its changes differ."""
    older, content = (Content(Variant.DELTA, ROUTE, {A: Version(item)}, ()) for item in "01")
    _, held = NOTHING_HELD.after(older, lambda: NO_VERSIONS)
    first, kept = NOTHING_HELD.after(content, lambda: NO_VERSIONS)
    changed, _ = held.after(content, lambda: NO_VERSIONS)
    again, other = NOTHING_HELD.after(content, lambda: NO_VERSIONS)
    assert changed == VersionChanges((), ((A, Version("0")),), (), 0)
    assert (first, kept) == (again, other)
    assert first == VersionChanges((A,), (), (), 0)


def test_proxies_connected_at_different_times_share_the_push_of_a_wave(mesh: Mesh) -> None:
    """A proxy that reconnects after the wave is sent the same, but with another trigger."""
    mesh.history.opened(OTHER, Variant.DELTA, 1.0)
    before, after = (resource("a"), resource("b")), resource("a", "2")
    for node in (NODE, OTHER):
        mesh.send(*before, node=node)
    wave = mesh.publish(after, before[1])
    for node in (NODE, OTHER):
        mesh.send(after, node=node)
    mesh.history.opened(OTHER, Variant.DELTA, 2.0)
    mesh.send(after, node=OTHER)
    one, *others = (push.delivery for node in (NODE, OTHER) for push in mesh.record(node).pushes[1:])
    assert others[0] is one
    assert [delivery.due for delivery in (one, *others)] == [(wave,), (wave,), Trigger.RECONNECTED]


def test_wave_missed_while_disconnected_is_no_cause_of_a_push(mesh: Mesh) -> None:
    """The push has the trigger `RECONNECTED`."""
    mesh.send(resource("a"), resource("b"))
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)  # a second reader of the wave's changes
    mesh.history.closed(NODE, 0.0)
    mesh.publish(resource("a", "2"), resource("b"))
    mesh.history.opened(NODE, Variant.DELTA, 1.0)
    mesh.send(resource("a", "2"))
    assert (mesh.last().trigger, mesh.last().waves) == (Trigger.RECONNECTED, ())


def test_groups_that_are_sent_the_same_share_the_delivery(mesh: Mesh) -> None:
    """One moved endpoint is one resource for a thousand groups of callers."""
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    mesh.send(resource("b"))
    same = resource("a")
    for node in (NODE, OTHER):
        mesh.send(same, node=node)
    proxies = {node: mesh.record(node) for node in (NODE, OTHER)}
    one, other = (proxies[node].pushes[-1] for node in (NODE, OTHER))
    assert proxies[NODE].types[ROUTE].client_versions is not proxies[OTHER].types[ROUTE].client_versions
    assert one.delivery is other.delivery


def test_proxy_that_is_sent_everything_shares_the_snapshots_versions(mesh: Mesh) -> None:
    """Otherwise a thousand groups would each have a mapping of a thousand resources."""
    every = tuple(resource(f"{n:03}") for n in range(100))
    mesh.publish(*every)
    mesh.send(*every)
    mesh.publish(*every[1:], resource("200"))
    mesh.send(resource("200"), removed=(every[0].name,))
    served = mesh.cache.snapshot(NODE)
    assert served is not None
    first, second = mesh.record(NODE).pushes
    assert first.delivery.content.versions == {item.name: item.version for item in every}
    assert isinstance(first.delivery.content.versions, Versions)
    assert mesh.record(NODE).types[ROUTE].client_versions.versions is served.versions(ROUTE)
    assert (second.delivery.move.added, second.delivery.move.removed) == (("200",), ("000",))


def test_first_responses_of_two_types_are_both_remembered_for_sharing(mesh: Mesh) -> None:
    """Every proxy starts with nothing of each type, so both proxies share the result of each type."""
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    first = {kind: resource("a", type_url=kind) for kind in (ROUTE, ENDPOINT)}
    for node in (NODE, OTHER):
        for kind, item in first.items():
            mesh.send(item, node=node, type_url=kind)
    one, other = (mesh.record(node).types for node in (NODE, OTHER))
    assert all(one[kind].client_versions is other[kind].client_versions for kind in first)


def test_groups_with_the_same_changes_share_their_triggers() -> None:
    """The causes of a response are then computed once for all of these groups."""
    triggers = Triggers(lambda group: True, lambda resource: None)
    before, after = (Snapshot.of([resource("a", version)]) for version in "12")
    groups = [GroupKey(item) for item in "gh"]
    step = Step(dict.fromkeys(groups, after))
    wave = Wave(1, (), 0, 0.0, 0.0, DATE)
    triggers.published(0, wave, step, dict.fromkeys(groups, before), ())
    triggers.published(1, wave, Step(dict.fromkeys(groups, before)), dict.fromkeys(groups, after), ())
    one, other = (triggers.waves(group) for group in groups)
    assert one is other
    assert [group_wave.moment for group_wave in one] == [0, 1]


def test_causes_are_computed_once_for_proxies_with_the_same_versions(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that reconnected has another state, so its causes are computed separately."""
    asked: list[bool] = []

    def found(*args: Any, is_news: bool) -> tuple[Wave, ...]:
        asked.append(is_news)
        return causing(*args, is_news=is_news)

    monkeypatch.setattr(history, "causing", found)
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    first = (resource("a"), resource("b"))
    for node in (NODE, OTHER):
        mesh.send(*first, node=node)
    for version in ("2", "3"):
        mesh.publish(resource("a", version), resource("b"))
        asked.clear()
        changed = resource("a", version)
        for node in (NODE, OTHER):
            mesh.send(changed, node=node)
        assert len(asked) == 1
        assert mesh.record(NODE).pushes[-1].delivery is mesh.record(OTHER).pushes[-1].delivery
    mesh.publish(resource("a", "4"), resource("b"))
    mesh.history.opened(OTHER, Variant.DELTA, 1.0)
    asked.clear()
    changed = resource("a", "4")
    for node in (NODE, OTHER):
        mesh.send(changed, node=node)
    assert len(asked) == 2
    assert (mesh.last(NODE).trigger, mesh.last(OTHER).trigger) == (Trigger.CHANGE, Trigger.RECONNECTED)


_NODES = st.sampled_from((NODE, OTHER))
_TABLES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"), min_size=1)
_DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), _TABLES),
        st.tuples(st.just("open"), _NODES),
        st.tuples(st.just("send"), _NODES, st.sets(st.sampled_from("abc"))),
        st.tuples(st.just("both"), st.sets(st.sampled_from("abc"))),
    ),
    max_size=12,
)


@given(_DEEDS)
def test_shared_results_equal_separate_computations(deeds: list[tuple[Any, ...]]) -> None:
    """For any pushes to two proxies of a group, remembering the other's result changes nothing."""
    result = _pushed(deeds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientVersions, "taken", property(lambda _: None, lambda _, value: None))
        assert _pushed(deeds) == result


def _pushed(deeds: list[tuple[Any, ...]]) -> list[tuple[Push, ...]]:
    mesh = Mesh()
    held = {name: resource(name) for name in "abc"}
    mesh.publish(*held.values(), moved=True)
    for node in (NODE, OTHER):
        mesh.history.opened(node, Variant.DELTA, 0.0)
    for what, *how in deeds:
        match what:
            case "publish":
                held = {**held, **{name: resource(name, version) for name, version in how[0].items()}}
                mesh.publish(*held.values())
            case "open":
                mesh.history.opened(how[0], Variant.DELTA, 0.0)
            case "send":
                mesh.send(*(held[name] for name in sorted(how[1])), node=how[0])
            case _:
                for node in (NODE, OTHER):
                    mesh.send(*(held[name] for name in sorted(how[0])), node=node)
    return [mesh.history.pushes(node, 0.0, DATE) for node in (NODE, OTHER)]
