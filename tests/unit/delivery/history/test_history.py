"""The last pushes of each proxy: what a response brought, what it was due to, what was said to it."""

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
    """A cache with one group of two proxies, and the history beside it."""

    def __init__(self) -> None:
        self.cache = SnapshotCache()
        self.registry = ProxyRegistry(lambda: DATE)
        self.history = PushHistory(self.cache, self.registry.of)
        self.waves = 0
        self.nonces = 0

    def publish(self, *resources: Resource, moved: bool = False, since: float = 0.0) -> Wave:
        """Publish the group's resources, as a wave does; with `moved` its proxies come to it now."""
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
        """Publish these for the first proxy alone, in a group of its own."""
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
        """Publish groups, and have proxies come to them."""
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
        """Return what is remembered of a proxy."""
        found = self.registry.of(node).pushes
        assert found is not None
        return found

    def last(self, node: NodeKey = NODE, now: float = 0.0) -> Push:
        """Return a proxy's newest push."""
        return self.history.pushes(node, now, DATE)[0]


@pytest.fixture
def mesh() -> Mesh:
    """Return a mesh whose proxy is connected and was served routes a and b."""
    made = Mesh()
    made.publish(resource("a"), resource("b"), moved=True)
    made.history.opened(NODE, Variant.DELTA, 0.0)
    return made


def _news(push: Push) -> tuple[Any, ...]:
    return (push.added, push.changed, push.removed, push.again)


def test_a_stream_that_opens_between_two_parts_of_a_wave_is_pushed_the_second(mesh: Mesh) -> None:
    """The wave is as new to it as to all others of its group."""
    mesh.withhold(resource("a", "2"))
    mesh.history.opened(OTHER, Variant.DELTA, 1.0)
    mesh.send(resource("a"), resource("b"), node=OTHER)
    mesh.waves -= 1
    wave = mesh.publish(resource("a", "3"), resource("b"))
    mesh.send(resource("a", "3"), node=OTHER)
    assert mesh.last(OTHER).waves == (wave,)
    assert mesh.last(OTHER).trigger is Trigger.CHANGE


def test_what_was_sent_to_two_with_others_between_is_one_value(mesh: Mesh) -> None:
    """One has taken all its steps before the other takes the same: what is remembered of them is shared."""
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    a, c = resource("a"), resource("c", type_url=CLUSTER)
    for node in (NODE, OTHER):
        mesh.send(a, node=node)
        mesh.send(c, node=node, type_url=CLUSTER)
    one, other = (mesh.record(node) for node in (NODE, OTHER))
    assert [id(each.delivery) for each in one.pushes] == [id(each.delivery) for each in other.pushes]
    assert len({id(each.delivery) for each in one.pushes}) == 2


def test_what_a_proxy_held_already_is_due_to_nothing_later(mesh: Mesh) -> None:
    """Held over a restart, it comes to its group and is sent no routes; those sent later are due to later."""
    mesh.publish(resource("a"), resource("b"), moved=True, since=100.0)
    later = mesh.publish(resource("a", "2"), resource("b"), since=444.0)
    response = Response(ROUTE, Version("v"), Nonce("n"), (resource("a", "2"),))
    assert mesh.history.sent(NODE, response, 100, 445.0) == Delays(1.0, None)
    assert mesh.last().waves == (later,)


def test_what_a_move_brought_is_due_to_it_beside_a_later_wave(mesh: Mesh) -> None:
    """One response for both: what the later one did not change, the move did."""
    first = mesh.publish(resource("a", "2"), resource("b", "2"), moved=True)
    later = mesh.publish(resource("a", "3"), resource("b", "2"))
    mesh.send(resource("a", "3"), resource("b", "2"))
    assert mesh.last().waves == (later, first)


def test_a_push_is_remembered_whole(mesh: Mesh) -> None:
    """When, why, what, how much, and how long it waits for an answer."""
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


def test_what_a_response_brought_is_told_from_what_was_held(mesh: Mesh) -> None:
    """Added, changed with both versions, removed, and sent again; of removals those that were there."""
    mesh.send(resource("a"), resource("b"))
    mesh.send(resource("a", "2"), resource("b"), resource("c"), removed=(ResourceName("never"),))
    assert _news(mesh.last()) == ((C,), ((A, Version("1"), Version("2")),), (), 1)
    mesh.send(removed=(B,))
    assert _news(mesh.last()) == ((), (), (B,), 0)


def test_in_state_of_the_world_what_is_not_listed_is_removed_where_answers_list_everything(
    mesh: Mesh,
) -> None:
    """Clusters and listeners; of routes only those that changed are sent."""
    mesh.history.opened(NODE, Variant.SOTW, 1.0)
    for kind, gone in ((CLUSTER, (B,)), (ROUTE, ())):
        mesh.send(resource("a", "1", kind), resource("b", "1", kind), type_url=kind)
        mesh.send(resource("a", "2", kind), type_url=kind)
        assert _news(mesh.last()) == ((), ((A, Version("1"), Version("2")),), gone, 0)


def test_a_new_stream_begins_anew_but_for_an_incremental_client(mesh: Mesh) -> None:
    """That one says what it holds, and is sent the rest."""
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


def test_a_push_is_due_to_the_wave_that_changed_what_it_holds(mesh: Mesh) -> None:
    """Not to one that changed something else, and not to one from before the stream."""
    mesh.send(resource("a"), resource("b"))
    assert mesh.last().waves == ()
    wave = mesh.publish(resource("a", "2"), resource("b"))
    mesh.send(resource("b"))
    assert (mesh.last().trigger, mesh.last().waves) == (Trigger.SUBSCRIBED, ())
    mesh.send(resource("a", "2"))
    assert (mesh.last().trigger, mesh.last().waves) == (Trigger.CHANGE, (wave,))


def test_a_push_may_be_due_to_several_waves(mesh: Mesh) -> None:
    """Of a client that was slow: all whose changes it has not been sent, newest first."""
    mesh.send(resource("a"), resource("b"))
    first = mesh.publish(resource("a", "2"), resource("b"))
    second = mesh.publish(resource("a", "2"), resource("b", "2"))
    mesh.send(resource("a", "2"), resource("b", "2"))
    assert mesh.last().waves == (second, first)


def test_what_was_asked_for_again_is_due_to_no_wave(mesh: Mesh) -> None:
    """It is what the client had before; but a removal that follows a change is due to that change."""
    mesh.send(resource("a"), resource("b"))
    wave = mesh.publish(resource("a", "2"))
    mesh.send(resource("a", "2"))
    mesh.send(resource("a", "2"))
    assert (mesh.last().trigger, mesh.last().again) == (Trigger.SUBSCRIBED, 1)
    mesh.send(removed=(B,))
    assert mesh.last().waves == (wave,)


def test_endpoints_sent_with_their_changed_cluster_are_due_to_its_wave(mesh: Mesh) -> None:
    """Though they are the same (rule O4)."""
    same = resource("a", "1", ENDPOINT)
    mesh.publish(resource("a", "1", CLUSTER), same)
    mesh.send(resource("a", "1", CLUSTER), type_url=CLUSTER)
    mesh.send(same, type_url=ENDPOINT)
    wave = mesh.publish(resource("a", "2", CLUSTER), same)
    mesh.send(same, type_url=ENDPOINT)
    assert (mesh.last().waves, mesh.last().again) == ((wave,), 1)


def test_a_proxy_that_comes_to_a_group_is_sent_everything_by_that_wave() -> None:
    """It was connected before its workload was known."""
    mesh = Mesh()
    mesh.history.opened(NODE, Variant.DELTA, 0.0)
    wave = mesh.publish(resource("a"), moved=True)
    mesh.send(resource("a"))
    assert mesh.last().waves == (wave,)


def test_answers_are_remembered_with_the_time_they_took(mesh: Mesh) -> None:
    """The time since the event is told of an ACK, for the metrics, and of no NACK."""
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


def test_the_answer_to_what_is_not_remembered_says_nothing(mesh: Mesh) -> None:
    """A client may answer what it was never sent."""
    sent = mesh.send(resource("a"))
    assert mesh.history.answered(NODE, replace(sent, nonce=Nonce("9")), None, 10.5) == Delays()
    assert mesh.last().answer is Answer.PENDING


def test_what_a_nack_leads_to_is_not_what_it_answers_was_due_to(mesh: Mesh) -> None:
    """The last good version is published in between."""
    mesh.send(resource("a"), resource("b"))
    bad = mesh.publish(resource("a", "2"), resource("b"))
    rejected = mesh.send(resource("a", "2"))
    mesh.history.answered(NODE, rejected, Rejection(3, "no"), 1.0)
    good = mesh.withhold(resource("a"), resource("b"))
    assert (mesh.last().answer, mesh.last().waves) == (Answer.NACK, (bad,))
    mesh.send(resource("a"))
    assert mesh.last().waves == (good,)


def test_the_oldest_response_without_an_answer_has_an_age(mesh: Mesh) -> None:
    """Until it is answered, overtaken, or its stream has ended."""
    assert mesh.history.unanswered_age(5.0) == 0.0
    first = mesh.send(resource("a"), now=1.0)
    mesh.send(resource("b"), now=2.0)
    assert mesh.history.unanswered_age(5.0) == 4.0
    mesh.history.answered(NODE, first, None, 5.0)
    assert mesh.history.unanswered_age(5.0) == 3.0
    mesh.history.closed(NODE, 0.0)
    assert mesh.history.unanswered_age(5.0) == 0.0
    assert mesh.last().answer is Answer.ENDED


def test_in_state_of_the_world_a_newer_response_overtakes(mesh: Mesh) -> None:
    """An answer to it that comes all the same counts."""
    mesh.history.opened(NODE, Variant.SOTW, 1.0)
    first = mesh.send(resource("a"), now=1.0)
    mesh.send(resource("a", "2"), now=2.0)
    assert [each.answer for each in mesh.history.pushes(NODE, 2.0, DATE)] == [
        Answer.PENDING,
        Answer.OVERTAKEN,
    ]
    assert mesh.history.unanswered_age(3.0) == 1.0
    mesh.history.answered(NODE, first, Rejection(3, "no"), 3.0)
    assert mesh.history.pushes(NODE, 3.0, DATE)[1].answer is Answer.NACK


def test_what_is_remembered_is_bounded(mesh: Mesh) -> None:
    """The oldest pushes go, and proxies that the registry forgets."""
    for _ in range(PUSHES + 3):
        mesh.send(resource("a"))
    shown = mesh.history.pushes(NODE, 0.0, DATE)
    assert [each.nonce for each in shown] == [str(number) for number in range(PUSHES + 3, 3, -1)]
    mesh.registry.follow(Picture())
    assert mesh.history.pushes(NODE, 0.0, DATE) == ()
    mesh.history.closed(NODE, 0.0)
    assert mesh.history.sent(NODE, mesh.send(resource("a")), 1, 0.0) == Delays()


def test_pushes_are_remembered_of_so_many_proxies(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one more they go with the proxy that was connected first: nobody waits for its answers."""
    monkeypatch.setattr("meshwright.delivery.history.history.PROXIES", 2)
    mesh.send(resource("a"))
    mesh.history.opened(OTHER, Variant.DELTA, 1.0)
    mesh.history.opened(NodeKey("c.store.shop"), Variant.DELTA, 2.0)
    assert mesh.history.pushes(NODE, 3.0, DATE) == ()
    assert mesh.history.unanswered_age(3.0) == 0.0
    assert mesh.registry.find(NODE) is not None


def test_earlier_versions_are_kept_but_no_secrets(mesh: Mesh) -> None:
    """As long as a proxy of the group is there to ask."""
    old = resource("a")
    mesh.publish(old, resource("s", "1", SECRET))
    mesh.publish(resource("a", "2"), resource("s", "2", SECRET))
    assert mesh.history.replaced(ROUTE, A, Version("1")) is old
    assert mesh.history.replaced(ROUTE, A, Version("2")) is None
    assert mesh.history.replaced(SECRET, ResourceName("s"), Version("1")) is None


def test_what_one_proxy_alone_is_served_no_more_is_kept(mesh: Mesh) -> None:
    """A version that it rejected: its group has it still, and it has another one in its place, or less."""
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
    mesh.publish(resource("a", "3"), moved=True)  # offered the next version, it leaves its own group
    assert mesh.history.replaced(ROUTE, A, Version("1")) == resource("a")


def test_what_a_proxy_leaves_with_its_group_is_kept(mesh: Mesh) -> None:
    """Also if the group goes with it, or changes at once; of one that is not there nothing is."""
    mesh.send(resource("a"), resource("b"))
    other, step = GroupKey("h"), Snapshot.of([resource("a", "2"), resource("b")])
    mesh.move({other: step, GROUP: None}, dict.fromkeys((NODE, OTHER), other))
    assert mesh.history.replaced(ROUTE, A, Version("1")) == resource("a")
    assert mesh.history.replaced(ROUTE, B, Version("1")) is None, "it has that one still"
    mesh.history.closed(NODE, 1.0)
    mesh.move({GROUP: Snapshot.of([resource("a", "3")]), other: None}, dict.fromkeys((NODE, OTHER), GROUP))
    assert mesh.history.replaced(ROUTE, A, Version("2")) is None


def test_however_often_versions_are_rejected_what_is_kept_is_bounded(mesh: Mesh) -> None:
    """By what all of it takes, the oldest first: who rejects everything takes no more than others."""
    size = 200_000
    for version in range(2, 102):
        bad = replace(resource("a", str(version)), kept=bytes(size))
        mesh.publish(bad, moved=True)
        mesh.history.answered(NODE, mesh.send(bad), Rejection(13, "no"), 0.0)
        mesh.withhold(resource("a"))
        mesh.send(resource("a"))
    kept = [each for each in range(2, 102) if mesh.history.replaced(ROUTE, A, Version(str(each))) is not None]
    assert 0 < sum(size for _ in kept) <= BYTES
    assert kept == list(range(102 - len(kept), 102))


def test_proxies_of_a_group_share_what_they_were_sent(mesh: Mesh) -> None:
    """The content and the difference are worked out once, for ever so many proxies."""
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    same = (resource("a"), resource("b"))
    mesh.send(*same)
    mesh.send(*same, node=OTHER)
    proxies = {node: mesh.record(node) for node in (NODE, OTHER)}
    one, other = (proxies[node].pushes[0].delivery for node in (NODE, OTHER))
    assert one is other
    assert proxies[NODE].types[ROUTE].held is proxies[OTHER].types[ROUTE].held


def test_what_no_other_is_sent_any_more_keeps_nothing_for_others(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content is known again for a while; then what is kept for the next who is sent it is let go of."""
    monkeypatch.setattr(versions, "CONTENTS", 1)
    mesh.publish(resource("a", "2"))
    mesh.send(resource("a", "2"))
    content = mesh.record(NODE).pushes[0].delivery.content
    assert None not in (content.delivery, content.first, content.last)
    mesh.send(resource("b"))
    assert (content.delivery, content.first, content.last, content.cause) == (None,) * 4
    assert mesh.history.pushes(NODE, 0.0, DATE)[-1].added == (A,)


def test_who_held_nothing_was_brought_everything_whoever_was_sent_the_same_between() -> None:
    """That another held an older version of it is that other's."""
    older, content = (Content(Variant.DELTA, ROUTE, {A: Version(each)}, ()) for each in "01")
    _, held = NOTHING_HELD.after(older, lambda: NO_VERSIONS)
    first, kept = NOTHING_HELD.after(content, lambda: NO_VERSIONS)
    changed, _ = held.after(content, lambda: NO_VERSIONS)
    again, other = NOTHING_HELD.after(content, lambda: NO_VERSIONS)
    assert changed == VersionChanges((), ((A, Version("0")),), (), 0)
    assert (first, kept) == (again, other)
    assert first == VersionChanges((A,), (), (), 0)


def test_proxies_that_came_at_other_times_share_what_a_wave_led_to(mesh: Mesh) -> None:
    """But one that comes back after it is sent the same for another reason."""
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
    assert [each.due for each in (one, *others)] == [(wave,), (wave,), Trigger.RECONNECTED]


def test_what_a_proxy_missed_is_not_due_to_the_wave_that_it_missed(mesh: Mesh) -> None:
    """It is sent because it is here again."""
    mesh.send(resource("a"), resource("b"))
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)  # for whom what a wave changes is looked at
    mesh.history.closed(NODE, 0.0)
    mesh.publish(resource("a", "2"), resource("b"))
    mesh.history.opened(NODE, Variant.DELTA, 1.0)
    mesh.send(resource("a", "2"))
    assert (mesh.last().trigger, mesh.last().waves) == (Trigger.RECONNECTED, ())


def test_groups_that_are_sent_the_same_share_it(mesh: Mesh) -> None:
    """One endpoint that moves is one resource for a thousand groups of callers."""
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    mesh.send(resource("b"))
    same = resource("a")
    for node in (NODE, OTHER):
        mesh.send(same, node=node)
    proxies = {node: mesh.record(node) for node in (NODE, OTHER)}
    one, other = (proxies[node].pushes[-1] for node in (NODE, OTHER))
    assert proxies[NODE].types[ROUTE].held is not proxies[OTHER].types[ROUTE].held
    assert one.delivery is other.delivery


def test_who_is_sent_all_there_is_holds_what_there_is(mesh: Mesh) -> None:
    """A thousand groups that are sent a thousand resources have no mapping of these each."""
    every = tuple(resource(f"{n:03}") for n in range(100))
    mesh.publish(*every)
    mesh.send(*every)
    mesh.publish(*every[1:], resource("200"))
    mesh.send(resource("200"), removed=(every[0].name,))
    served = mesh.cache.snapshot(NODE)
    assert served is not None
    first, second = mesh.record(NODE).pushes
    assert first.delivery.content.versions == {each.name: each.version for each in every}
    assert isinstance(first.delivery.content.versions, Versions)
    assert mesh.record(NODE).types[ROUTE].held.versions is served.versions(ROUTE)
    assert (second.delivery.move.added, second.delivery.move.removed) == (("200",), ("000",))


def test_types_do_not_drive_out_each_others_first_answer(mesh: Mesh) -> None:
    """Every proxy begins with nothing of each type: what its first answers lead to is known for all types."""
    mesh.history.opened(OTHER, Variant.DELTA, 0.0)
    first = {kind: resource("a", type_url=kind) for kind in (ROUTE, ENDPOINT)}
    for node in (NODE, OTHER):
        for kind, each in first.items():
            mesh.send(each, node=node, type_url=kind)
    one, other = (mesh.record(node).types for node in (NODE, OTHER))
    assert all(one[kind].held is other[kind].held for kind in first)


def test_groups_to_which_the_same_happened_share_what_is_remembered_of_it() -> None:
    """So what a response was due to is worked out once for all of them."""
    triggers = Triggers(lambda group: True, lambda resource: None)
    before, after = (Snapshot.of([resource("a", version)]) for version in "12")
    groups = [GroupKey(each) for each in "gh"]
    step = Step(dict.fromkeys(groups, after))
    wave = Wave(1, (), 0, 0.0, 0.0, DATE)
    triggers.published(0, wave, step, dict.fromkeys(groups, before), ())
    triggers.published(1, wave, Step(dict.fromkeys(groups, before)), dict.fromkeys(groups, after), ())
    one, other = (triggers.of(group) for group in groups)
    assert one is other
    assert [each.moment for each in one] == [0, 1]


def test_who_is_sent_what_another_was_from_where_that_stood_is_told_nothing_anew(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was due to is found once, however many are sent it; not for one that stood elsewhere."""
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
def test_what_is_looked_up_is_what_would_have_been_found(deeds: list[tuple[Any, ...]]) -> None:
    """Whatever two proxies of a group are sent when: remembering how others took it changes nothing."""
    found = _pushed(deeds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientVersions, "taken", property(lambda _: None, lambda _, value: None))
        assert _pushed(deeds) == found


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
