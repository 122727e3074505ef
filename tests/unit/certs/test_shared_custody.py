"""Tests of the CA and the ledger that several servers open in one store of records."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.custody import AuthorityWithLedger, opened
from certs.errors import StateError
from certs.proxy import issue_proxy
from certs.shared_custody import NO_ROTATION, SharedStores, open_shared
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import LoopThread

DOMAIN = TrustDomain("mesh.example")
NAME = ProxyName.parse("a.store.shop")
NOW = datetime.fromisoformat("2031-05-06T07:08:09+00:00")


def _opened(thread: LoopThread, memory: Memory, state: Path) -> AuthorityWithLedger:
    """Open the CA and the ledger as a server with this state directory."""
    replica = ReplicaId(state.name)
    stores = SharedStores.open(MemoryRecords(memory, replica), replica, thread.loop, state, None)
    thread.start(stores.ledger.follow(lambda _: None), stores.pairs.follow())
    thread.run(stores.pairs.listed())
    return open_shared(stores, state, DOMAIN, NOW, None)


def test_servers_have_one_ca_and_one_ledger(tmp_path: Path) -> None:
    """The first one makes the CA. A server with an empty directory has all, and none can rotate the root."""
    memory = Memory()
    with LoopThread() as thread:
        one, two = (_opened(thread, memory, tmp_path / name) for name in ("one", "two"))
        assert (one.made, two.made) == (True, False)
        assert one.authority.trust_bundle() == two.authority.trust_bundle()
        issued = issue_proxy(one.authority, one.ledger, NAME, timedelta(hours=1), NOW)
        one.first.note(one.ledger)
        three = _opened(thread, memory, tmp_path / "three")
        assert [entry.serial for entry in three.ledger.entries()] == [issued.serial]
        assert three.first.read() == issued.serial
        for server in (one, two, three):
            whose = server.opened_authority
            assert (whose.changing, whose.why_not) == (None, NO_ROTATION)


def test_directory_belongs_to_one_of_the_two_kinds_of_stores(tmp_path: Path) -> None:
    """A directory with a CA is refused before the store has any record, and the other way round."""
    own, shared, memory = tmp_path / "own", tmp_path / "shared", Memory()
    with opened(own, DOMAIN, NOW):
        pass
    with LoopThread() as thread:
        with pytest.raises(StateError, match=r"own has a CA of its own, .* name an empty state directory"):
            _opened(thread, memory, own)
        assert memory.records == {}
        _opened(thread, memory, shared)
    files = sorted(path.name for path in shared.iterdir())
    with pytest.raises(StateError, match="are in a store of several servers"), opened(shared, DOMAIN, NOW):
        pass
    assert sorted(path.name for path in shared.iterdir()) == files == ["shared-store"]
