"""Health of real members, as `meshwright check` sees it."""

from meshwright.etcd.access import Access, Endpoint
from meshwright.etcd.client import Client
from meshwright.etcd.health import history, member_healths
from meshwright.etcd.health_values import History
from tests.kubernetes.etcd.members import RealMember
from tools.ports import free_port
from tools.real_parts.keys import LOOPBACK


async def test_each_member_is_asked_by_itself(own_member: RealMember) -> None:
    """A member that runs reports its space; one that does not answer has a sentence."""
    nobody = Endpoint(LOOPBACK, free_port(LOOPBACK), tls=False)
    lost, found = await member_healths(Access((nobody, own_member.endpoint)), 3.0)
    assert lost.endpoint == str(nobody)
    assert lost.error.startswith(f"etcd at {nobody} cannot answer Status now: ")
    assert (found.endpoint, found.error, found.has_leader, found.alarms) == (own_member.url, "", True, ())
    assert 0 < found.size < found.quota
    assert found.version.count(".") == 2


async def test_compaction_is_seen(own_member: RealMember) -> None:
    """A store that was never compacted still has its first revision."""
    async with Client(Access((own_member.endpoint,))) as client:
        own_member.put(b"/meshwright/mesh/a", b"1")
        assert await history(client, b"/meshwright/mesh/none") == History(2, is_whole=True)
        own_member.compact()
        assert await history(client, b"/meshwright/mesh/none") == History(2, is_whole=False)
