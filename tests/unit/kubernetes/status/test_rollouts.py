"""Tests of roll-outs: which proxies have applied the last change of an object."""

import random
from collections.abc import Mapping
from dataclasses import replace

from meshwright.delivery.quarantine.acknowledged_resources import OWN, AcknowledgedVersions
from meshwright.kubernetes.status.rollouts import Progress, Rollouts, concerned
from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    SECRET,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.snapshot import Snapshot

KEY = ObjectKey(WORKLOAD, Namespace("shop"), "till-1")
A, B, C = (NodeKey(f"{item}.till.shop") for item in "abc")
ONE = ResourceName("one")
NAMES = {ENDPOINT: frozenset({ONE})}


def resource(version: str, kind: TypeUrl = ENDPOINT, name: ResourceName = ONE) -> Resource:
    """Return a resource."""
    return Resource(kind, name, Version(version), b"")


class Proxies:
    """Proxies with one common snapshot, and the resources that each has acknowledged."""

    def __init__(self, *served: Resource) -> None:
        self.snapshot = Snapshot.of(served)
        self.has: dict[NodeKey, dict[TypeUrl, AcknowledgedVersions]] = {}

    def connect(self, node: NodeKey, *acknowledged: Resource) -> None:
        """Connect a proxy that has acknowledged only these resources."""
        held = self.has[node] = {}
        for item in acknowledged:
            held[item.type_url] = held.get(item.type_url, AcknowledgedVersions(OWN)).put({item.name: (item,)})

    def acknowledged(self, node: NodeKey) -> dict[TypeUrl, AcknowledgedVersions] | None:
        """Return the acknowledged versions of a connected proxy."""
        return self.has.get(node)

    def served(self, node: NodeKey) -> Snapshot | None:
        """Return the same snapshot for every proxy."""
        return self.snapshot


def test_rollout_is_pending_until_every_proxy_has_acknowledged_it() -> None:
    """A proxy that has applied the change once stays counted, even if it shows an older version later."""
    proxies = Proxies(resource("2"))
    for node in (A, B):
        proxies.connect(node, resource("1"))
    rollouts = Rollouts(proxies)
    assert rollouts.progress(KEY) is None
    rollouts.begin([KEY], {A: NAMES, B: NAMES})
    assert rollouts.look() == frozenset()
    assert rollouts.progress(KEY) == Progress(0, 2)
    proxies.connect(A, resource("2"))
    assert rollouts.look() == {KEY}
    assert (rollouts.progress(KEY), rollouts.is_pending) == (Progress(1, 2), True)
    proxies.connect(A, resource("1"))
    proxies.connect(B, resource("2"))
    assert rollouts.look() == {KEY}
    assert (rollouts.progress(KEY), rollouts.is_pending) == (Progress(2, 2), False)


def test_disconnected_proxy_is_no_longer_counted() -> None:
    """A roll-out does not wait for a proxy that has left."""
    proxies = Proxies(resource("2"))
    proxies.connect(A, resource("2"))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: NAMES, B: NAMES})
    assert rollouts.look() == {KEY}
    assert rollouts.progress(KEY) == Progress(1, 1)


def test_proxy_need_not_acknowledge_a_type_it_does_not_request() -> None:
    """A proxy that has acknowledged other types but never this one does not request it.

    A proxy without any acknowledgement has not begun, so it counts as pending.
    """
    proxies = Proxies(resource("2"), resource("1", CLUSTER))
    proxies.connect(A, resource("1", CLUSTER))
    proxies.connect(B)
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: NAMES, B: NAMES})
    rollouts.look()
    assert rollouts.progress(KEY) == Progress(1, 2)


def test_proxy_need_not_acknowledge_a_secret_it_does_not_use() -> None:
    """A gateway shows a certificate, and its backends need none of its own; an older version is no use."""
    shown = ResourceName("gateway-cert:shop/shown")
    proxies = Proxies(resource("1", SECRET), resource("2", SECRET, shown))
    proxies.connect(A, resource("2", SECRET, shown))
    proxies.connect(B, resource("1", SECRET, shown))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: None, B: None})
    rollouts.look()
    assert rollouts.progress(KEY) == Progress(1, 2)


def test_proxy_with_the_newest_version_has_applied_an_older_change() -> None:
    """A replaced or removed resource counts as applied.

    A proxy with the newest version is past the change.
    """
    proxies = Proxies(resource("3"))
    proxies.connect(A, resource("3"))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: NAMES | {LISTENER: frozenset({ResourceName("gone")})}})
    rollouts.look()
    assert rollouts.progress(KEY) == Progress(1, 1)


def test_proxy_that_moved_to_another_group_has_to_acknowledge_the_whole_snapshot() -> None:
    """Any resource may differ in another group's snapshot."""
    proxies = Proxies(resource("2"), resource("1", CLUSTER))
    proxies.connect(A, resource("2"), resource("0", CLUSTER))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: None})
    assert rollouts.look() == frozenset()
    proxies.connect(A, resource("2"), resource("1", CLUSTER))
    assert rollouts.look() == {KEY}


def test_new_change_restarts_a_rollout_and_a_part_extends_it() -> None:
    """`begin` starts the count again, and `extend` adds proxies, because a wave may be published in parts."""
    proxies = Proxies(resource("2"))
    for node in (A, B, C):
        proxies.connect(node, resource("2"))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: NAMES})
    rollouts.look()
    rollouts.extend([KEY], {B: NAMES, C: NAMES})
    assert rollouts.progress(KEY) == Progress(1, 3)
    rollouts.begin([KEY], {B: NAMES})
    assert rollouts.progress(KEY) == Progress(0, 1)
    rollouts.forget(KEY)
    assert (rollouts.progress(KEY), rollouts.is_pending) == (None, False)


def test_only_connected_proxies_with_a_changed_snapshot_are_concerned() -> None:
    """Groups with an equal snapshot, without a proxy or without a snapshot concern no proxy."""
    old, new = Snapshot.of([resource("1")]), Snapshot.of([resource("2")])
    groups = [GroupKey(item) for item in ("changed", "same", "empty", "gone")]
    changed, same, empty, gone = groups
    here: Mapping[GroupKey, tuple[NodeKey, ...]] = {changed: (A,), same: (B,), gone: (C,)}
    result = concerned(
        dict.fromkeys(groups, old),
        {changed: new, same: old, empty: new, gone: None},
        lambda group: here.get(group, ()),
    )
    assert {node: dict(names or {}) for node, names in result.items()} == {A: NAMES}


class HashCountingName(str):
    """A name that counts the calculations of its hash."""

    __slots__ = ()
    hashed = 0

    def __hash__(self) -> int:
        """Count and return the hash."""
        HashCountingName.hashed += 1
        return super().__hash__()

    __eq__ = str.__eq__


def test_objects_that_change_together_cost_as_much_as_one() -> None:
    """Objects that are applied together concern all proxies.

    The look-up must not examine each object with each proxy.
    """
    proxies = Proxies(resource("2"))
    nodes = [NodeKey(HashCountingName(f"{number}.till.shop")) for number in range(100)]
    for node in nodes:
        proxies.connect(node, resource("1"))
    keys = [replace(KEY, name=f"till-{number}") for number in range(100)]
    rollouts = Rollouts(proxies)
    rollouts.begin(keys, {})
    rollouts.extend(keys, dict.fromkeys(nodes, NAMES))
    HashCountingName.hashed = 0
    assert rollouts.look() == frozenset()
    assert HashCountingName.hashed < 10 * len(nodes)
    for node in nodes[1:]:
        proxies.connect(node, resource("2"))
    assert rollouts.look() == frozenset(keys)
    assert {rollouts.progress(key) for key in keys} == {Progress(99, 100)}


def test_proxies_that_join_rollouts_together_cost_as_much_as_one_object() -> None:
    """The bound also holds for objects without a roll-out yet.

    Thousands of machines may enter traffic at once.
    """
    proxies = Proxies(resource("2"))
    nodes = [NodeKey(HashCountingName(f"{number}.till.shop")) for number in range(100)]
    for node in nodes:
        proxies.connect(node, resource("1"))
    keys = [replace(KEY, name=f"till-{number}") for number in range(100)]
    rollouts, names = Rollouts(proxies), dict.fromkeys(nodes, NAMES)
    for join in (rollouts.extend, rollouts.renew, rollouts.extend):
        HashCountingName.hashed = 0
        join(keys, names)
        assert HashCountingName.hashed < 10 * len(nodes)
    HashCountingName.hashed = 0
    assert rollouts.look() == frozenset()
    assert HashCountingName.hashed < 10 * len(nodes)
    assert {rollouts.progress(key) for key in keys} == {Progress(0, 100)}


def test_proxy_is_counted_once_after_a_second_change() -> None:
    """A proxy with both changes applied counts once, and a proxy with only one of them is pending."""
    proxies = Proxies(resource("2"), resource("2", CLUSTER))
    proxies.connect(A, resource("2"), resource("2", CLUSTER))
    proxies.connect(B, resource("1"), resource("1", CLUSTER))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: NAMES, B: NAMES})
    rollouts.look()
    assert rollouts.progress(KEY) == Progress(1, 2)
    rollouts.renew([KEY], {A: {CLUSTER: NAMES[ENDPOINT]}, B: {CLUSTER: NAMES[ENDPOINT]}, C: NAMES})
    assert rollouts.progress(KEY) == Progress(0, 3)
    proxies.connect(B, resource("1"), resource("2", CLUSTER))
    rollouts.look()
    assert rollouts.progress(KEY) == Progress(1, 2), "C has gone, and B has only the second"
    proxies.connect(B, resource("2"), resource("2", CLUSTER))
    rollouts.look()
    assert rollouts.progress(KEY) == Progress(2, 2)


def test_objects_that_changed_together_have_independent_rollouts_later() -> None:
    """After random operations on some objects, each roll-out equals the one of an object alone."""
    chance = random.Random(7)  # noqa: S311 - no secret
    keys = [replace(KEY, name=f"till-{number}") for number in range(4)]
    for _ in range(200):
        proxies = Proxies(resource("2"))
        together, alone = Rollouts(proxies), {key: Rollouts(proxies) for key in keys}
        for _ in range(12):
            some = chance.sample(keys, chance.randint(1, 4))
            nodes = dict.fromkeys(chance.sample([A, B, C], chance.randint(0, 3)), NAMES)
            match chance.choice(("begin", "extend", "renew", "extend", "forget", "look")):
                case "begin":
                    together.begin(some, nodes)
                    for key in some:
                        alone[key].begin([key], nodes)
                case "extend":
                    together.extend(some, nodes)
                    for key in some:
                        alone[key].extend([key], nodes)
                case "renew":
                    together.renew(some, nodes)
                    for key in some:
                        alone[key].renew([key], nodes)
                case "forget":
                    together.forget(some[0])
                    alone[some[0]].forget(some[0])
                case _:
                    proxies.connect(chance.choice([A, B, C]), resource(chance.choice("12")))
                    looked = frozenset().union(*(rollouts.look() for rollouts in alone.values()))
                    assert together.look() == looked
            assert [together.progress(key) for key in keys] == [alone[k].progress(k) for k in keys]
            assert together.is_pending == any(rollouts.is_pending for rollouts in alone.values())
