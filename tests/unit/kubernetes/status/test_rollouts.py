"""Roll-outs: who has applied the last change of an object."""

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
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.snapshot import Snapshot

KEY = ObjectKey(WORKLOAD, Namespace("shop"), "till-1")
A, B, C = (NodeKey(f"{each}.till.shop") for each in "abc")
ONE = ResourceName("one")
NAMES = {ENDPOINT: frozenset({ONE})}


def resource(version: str, kind: TypeUrl = ENDPOINT, name: ResourceName = ONE) -> Resource:
    """Make a resource."""
    return Resource(kind, name, Version(version), b"")


class Proxies:
    """Proxies that are served one snapshot, and what each has acknowledged."""

    def __init__(self, *served: Resource) -> None:
        self.snapshot = Snapshot.of(served)
        self.has: dict[NodeKey, dict[TypeUrl, AcknowledgedVersions]] = {}

    def connect(self, node: NodeKey, *acknowledged: Resource) -> None:
        """Have a proxy connected that has acknowledged these, and nothing else."""
        held = self.has[node] = {}
        for each in acknowledged:
            held[each.type_url] = held.get(each.type_url, AcknowledgedVersions(OWN)).put({each.name: (each,)})

    def acknowledged(self, node: NodeKey) -> dict[TypeUrl, AcknowledgedVersions] | None:
        """Answer for those who are connected."""
        return self.has.get(node)

    def served(self, node: NodeKey) -> Snapshot | None:
        """Answer the same for all."""
        return self.snapshot


def test_a_rollout_goes_on_until_everybody_has_acknowledged_it() -> None:
    """Whoever was seen to have applied it is not asked again."""
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


def test_who_goes_is_counted_no_more() -> None:
    """Nobody waits for it."""
    proxies = Proxies(resource("2"))
    proxies.connect(A, resource("2"))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: NAMES, B: NAMES})
    assert rollouts.look() == {KEY}
    assert rollouts.progress(KEY) == Progress(1, 1)


def test_what_a_proxy_does_not_ask_for_it_need_not_acknowledge() -> None:
    """Of a type of which it has never acknowledged anything; who has acknowledged nothing has not begun."""
    proxies = Proxies(resource("2"), resource("1", CLUSTER))
    proxies.connect(A, resource("1", CLUSTER))
    proxies.connect(B)
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: NAMES, B: NAMES})
    rollouts.look()
    assert rollouts.progress(KEY) == Progress(1, 2)


def test_a_resource_that_is_gone_or_newer_by_now_is_what_counts() -> None:
    """The change has been replaced: whoever has the newest has got past it."""
    proxies = Proxies(resource("3"))
    proxies.connect(A, resource("3"))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: NAMES | {LISTENER: frozenset({ResourceName("gone")})}})
    rollouts.look()
    assert rollouts.progress(KEY) == Progress(1, 1)


def test_a_proxy_that_came_to_another_group_has_to_acknowledge_all_of_it() -> None:
    """What changed for it may be anything."""
    proxies = Proxies(resource("2"), resource("1", CLUSTER))
    proxies.connect(A, resource("2"), resource("0", CLUSTER))
    rollouts = Rollouts(proxies)
    rollouts.begin([KEY], {A: None})
    assert rollouts.look() == frozenset()
    proxies.connect(A, resource("2"), resource("1", CLUSTER))
    assert rollouts.look() == {KEY}


def test_a_new_change_begins_anew_and_a_part_of_one_adds() -> None:
    """A wave may be published in parts."""
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


def test_concerned_is_who_is_here_and_is_served_something_else() -> None:
    """Not a group whose snapshot came to the same, or in which nobody is."""
    old, new = Snapshot.of([resource("1")]), Snapshot.of([resource("2")])
    groups = [GroupKey(each) for each in ("changed", "same", "empty", "gone")]
    changed, same, empty, gone = groups
    here: Mapping[GroupKey, tuple[NodeKey, ...]] = {changed: (A,), same: (B,), gone: (C,)}
    found = concerned(
        dict.fromkeys(groups, old),
        {changed: new, same: old, empty: new, gone: None},
        lambda group: here.get(group, ()),
    )
    assert {node: dict(names or {}) for node, names in found.items()} == {A: NAMES}


class Hashed(str):
    """A name that counts how often it is looked up."""

    __slots__ = ()
    hashed = 0

    def __hash__(self) -> int:
        """Count."""
        Hashed.hashed += 1
        return super().__hash__()

    __eq__ = str.__eq__


def test_what_changes_together_costs_as_one_change() -> None:
    """Objects that are applied at once concern all proxies: it is not looked at each with each."""
    proxies = Proxies(resource("2"))
    nodes = [NodeKey(Hashed(f"{number}.till.shop")) for number in range(100)]
    for node in nodes:
        proxies.connect(node, resource("1"))
    keys = [replace(KEY, name=f"till-{number}") for number in range(100)]
    rollouts = Rollouts(proxies)
    rollouts.begin(keys, {})
    rollouts.extend(keys, dict.fromkeys(nodes, NAMES))
    Hashed.hashed = 0
    assert rollouts.look() == frozenset()
    assert Hashed.hashed < 10 * len(nodes)
    for node in nodes[1:]:
        proxies.connect(node, resource("2"))
    assert rollouts.look() == frozenset(keys)
    assert {rollouts.progress(each) for each in keys} == {Progress(99, 100)}


def test_what_joins_a_rollout_together_costs_as_one() -> None:
    """Also where none of it has one yet: thousands of machines may come into traffic at once."""
    proxies = Proxies(resource("2"))
    nodes = [NodeKey(Hashed(f"{number}.till.shop")) for number in range(100)]
    for node in nodes:
        proxies.connect(node, resource("1"))
    keys = [replace(KEY, name=f"till-{number}") for number in range(100)]
    rollouts, names = Rollouts(proxies), dict.fromkeys(nodes, NAMES)
    for join in (rollouts.extend, rollouts.renew, rollouts.extend):
        Hashed.hashed = 0
        join(keys, names)
        assert Hashed.hashed < 10 * len(nodes)
    Hashed.hashed = 0
    assert rollouts.look() == frozenset()
    assert Hashed.hashed < 10 * len(nodes)
    assert {rollouts.progress(each) for each in keys} == {Progress(0, 100)}


def test_who_has_applied_a_change_is_not_counted_twice_when_it_is_changed_further() -> None:
    """And who has not has to apply both, and is counted once."""
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


def test_what_changed_together_goes_its_own_way_later() -> None:
    """Whatever happens to some of them: the others' roll-out is what it would be without them."""
    chance = random.Random(7)  # noqa: S311 - no secret
    keys = [replace(KEY, name=f"till-{number}") for number in range(4)]
    for _ in range(200):
        proxies = Proxies(resource("2"))
        together, alone = Rollouts(proxies), {each: Rollouts(proxies) for each in keys}
        for _ in range(12):
            some = chance.sample(keys, chance.randint(1, 4))
            nodes = dict.fromkeys(chance.sample([A, B, C], chance.randint(0, 3)), NAMES)
            match chance.choice(("begin", "extend", "renew", "extend", "forget", "look")):
                case "begin":
                    together.begin(some, nodes)
                    for each in some:
                        alone[each].begin([each], nodes)
                case "extend":
                    together.extend(some, nodes)
                    for each in some:
                        alone[each].extend([each], nodes)
                case "renew":
                    together.renew(some, nodes)
                    for each in some:
                        alone[each].renew([each], nodes)
                case "forget":
                    together.forget(some[0])
                    alone[some[0]].forget(some[0])
                case _:
                    proxies.connect(chance.choice([A, B, C]), resource(chance.choice("12")))
                    looked = frozenset().union(*(each.look() for each in alone.values()))
                    assert together.look() == looked
            assert [together.progress(each) for each in keys] == [alone[k].progress(k) for k in keys]
            assert together.is_pending == any(each.is_pending for each in alone.values())
