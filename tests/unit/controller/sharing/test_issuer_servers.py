"""Tests of the exchange between servers about sidecars that lack the roots of a new issuer."""

from certs.report_records.sidecar_reports import SidecarReports
from meshwright.controller.sharing.issuer_servers import IssuerServers
from meshwright.records.contract import Epoch, ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.replicas.departures import SETTLED_SECONDS, Departures
from meshwright.replicas.leadership import Leadership
from meshwright.replicas.membership import Membership
from meshwright.replicas.state import ReplicaState
from tests.tools.shared_records import LoopThread

A, B, C = (ReplicaId(name) for name in "abc")
RECENT = "sidecars of a server that ended a moment ago, or before this server began"


async def test_leader_waits_for_the_sidecars_of_all_servers() -> None:
    """Also for those of a server that has not reported, and of one that has just ended."""
    memory, now = Memory(), [0.0]
    with LoopThread() as thread:
        taken = {name: SidecarReports(MemoryRecords(memory, name), name, thread.loop) for name in (A, B, C)}
        thread.start(*(one.follow() for one in taken.values()))
        membership, leadership = Membership(A, ReplicaState()), Leadership()
        departures = Departures(membership, lambda: now[0])
        servers = IssuerServers(taken[A], membership, leadership, departures)
        membership.hear({name: ReplicaState().encode() for name in (A, B, C)})
        assert await servers.lacking("5f2c", ["one"]) is None
        leadership.begin(Epoch(1))
        taken[B].write("5f2c", [f"p{number}" for number in range(12)])
        taken[C].write("77ab", [])
        waits = ("12 sidecars of server b", "server c, which has not reported")
        assert await servers.lacking("5f2c", ["one"]) == ("one", *waits, RECENT)
        now[0] += SETTLED_SECONDS
        assert await servers.lacking("5f2c", []) == waits
        taken[B].write("5f2c", [])
        membership.hear({name: ReplicaState().encode() for name in (A, B)})
        assert await servers.lacking("5f2c", []) == (RECENT,)
        now[0] += SETTLED_SECONDS
        assert await servers.lacking("5f2c", []) == ()
        assert set(memory.records) == {"sidecars/a", "sidecars/b", "sidecars/c"}
        await servers.done()
        assert set(memory.records) == {"sidecars/b"}
