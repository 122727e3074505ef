"""Tests of the servers of one mesh that are here."""

from meshwright.records.contract import Epoch, ReplicaId
from meshwright.replicas.membership import Membership
from meshwright.replicas.state import ReplicaState

A, B, C = map(ReplicaId, "abc")


def test_all_servers_are_here_with_their_states() -> None:
    """The own state is the present one, and a state that cannot be read does not hide its server."""
    membership = Membership(B, ReplicaState(version="1"))
    heard = list[int]()
    membership.follow(lambda: heard.append(len(membership.states)))
    membership.hear({A: ReplicaState(version="2").encode(), B: ReplicaState().encode(), C: b"?"})
    membership.set_facts(streams=4)
    assert list(membership.states.items()) == [
        (A, ReplicaState(version="2")),
        (B, ReplicaState(version="1", streams=4)),
        (C, None),
    ]
    membership.hear({B: membership.encoded()})
    assert list(membership.states) == [B]
    assert heard == [3, 1]


def test_latest_term_names_the_leader() -> None:
    """A former leader may still announce its old term."""
    membership = Membership(A, ReplicaState())
    leaders = [membership.leader]
    membership.hear({B: ReplicaState(epoch=Epoch(3)).encode(), C: ReplicaState(epoch=Epoch(2)).encode()})
    leaders.append(membership.leader)
    membership.set_facts(epoch=Epoch(4))
    leaders.append(membership.leader)
    assert leaders == [None, B, A]
