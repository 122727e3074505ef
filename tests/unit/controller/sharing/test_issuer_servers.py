"""Tests of the exchange between servers about sidecars that lack the roots of a new issuer."""

from certs.report_records.sidecar_reports import SidecarReports
from certs.state.sealing import RecordSeal
from meshwright.controller.sharing.issuer_servers import IssuerServers
from meshwright.records.content import Content
from meshwright.records.contract import Epoch, ReplicaId
from meshwright.records.key import key_of
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.replicas.departures import SETTLED_SECONDS, Departures
from meshwright.replicas.leadership import Leadership
from meshwright.replicas.membership import Membership
from meshwright.replicas.state import ReplicaState
from tests.tools.shared_records import LoopThread

SEAL = RecordSeal(bytes(32))
A, B, C = (ReplicaId(name) for name in "abc")
RECENT = "sidecars of a server that ended a moment ago, or before this server began"


async def test_leader_waits_for_the_sidecars_of_all_servers() -> None:
    """Also for those of a server that has not reported, and of one that has just ended."""
    memory, now = Memory(), [0.0]
    with LoopThread() as thread:
        taken = {
            name: SidecarReports(MemoryRecords(memory, name), name, thread.loop, SEAL) for name in (A, B, C)
        }
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


async def test_claim_that_all_sidecars_have_the_roots_needs_a_proof() -> None:
    """The permission to write records is not enough to end the leader's wait for other servers."""
    memory = Memory()
    with LoopThread() as thread:
        taken = {
            name: SidecarReports(MemoryRecords(memory, name), name, thread.loop, SEAL) for name in (A, B)
        }
        thread.start(*(one.follow() for one in taken.values()))
        taken[B].write("5f2c", ["one"])
        assert taken[A].lacking("5f2c", (A, B)) == ("1 sidecars of server b",)
        key = key_of("sidecars", "b")
        fields = Content.decode(memory.records[key].content).fields

        async def forge() -> None:
            memory.put(key, Content({**fields, "count": 0, "first": []}, B, count=9).encode())

        thread.run(forge())
        assert taken[A].lacking("5f2c", (A, B)) == ("server b, which has not reported",)
