"""Tests of the order of servers for a task."""

from collections import Counter

from meshwright.records.contract import ReplicaId
from meshwright.replicas.turns import turn

HERE = [ReplicaId(f"mesh-{number}") for number in range(3)]
TASKS = [f"shop/account-{number}" for number in range(300)]


def test_servers_agree_on_one_order_that_spreads_the_tasks() -> None:
    """Each turn is that of one server, and each server is the first one for a third of the tasks."""
    for task in TASKS:
        assert sorted(turn(task, me, HERE) for me in HERE) == [0, 1, 2]
    firsts = Counter(me for task in TASKS for me in HERE if turn(task, me, HERE) == 0)
    assert all(70 < count < 130 for count in firsts.values())


def test_only_the_tasks_of_an_ended_server_move() -> None:
    """The server that was the second one for them is then the first one."""
    for task in TASKS:
        before = {turn(task, me, HERE): me for me in HERE}
        left = [me for me in HERE if me != before[0]]
        assert turn(task, before[1], left) == 0
        assert turn(task, before[0], [me for me in HERE if me != before[2]]) == 0


def test_server_that_is_not_announced_yet_has_a_turn() -> None:
    """A server alone is the first one."""
    assert turn("shop/cart", HERE[0], []) == turn("shop/cart", HERE[0], HERE[:1]) == 0
