"""Tests of the CA and the ledger that several servers open in one store of records."""

import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.custody import AuthorityWithLedger, opened
from certs.errors import StateError
from certs.ledger.records.header import HEADER
from certs.proxy import issue_proxy
from certs.shared_records.custody import AUTHORITY, SEAL, SharedStores, open_shared
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.records.contract import ReplicaId
from meshwright.records.key import Key
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
    """The first one makes the CA. A server with an empty directory has all, and each can rotate the root."""
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
            assert (whose.changing, whose.why_not) == (whose.authority, "")


def test_directory_belongs_to_one_of_the_two_kinds_of_stores(tmp_path: Path) -> None:
    """A directory with a CA is refused before the store has any record, and the other way round."""
    own, shared, memory = tmp_path / "own", tmp_path / "shared", Memory()
    with opened(own, DOMAIN, NOW):
        pass
    with LoopThread() as thread:
        with pytest.raises(
            StateError, match=r"own has a CA or a ledger of its own, .* `meshwright state move`"
        ):
            _opened(thread, memory, own)
        assert memory.records == {}
        _opened(thread, memory, shared)
    files = sorted(path.name for path in shared.iterdir())
    with pytest.raises(StateError, match="are in a store of several servers"), opened(shared, DOMAIN, NOW):
        pass
    assert sorted(path.name for path in shared.iterdir()) == files == ["shared-store"]


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ((AUTHORITY,), "the record authority with the CA is missing"),
        ((AUTHORITY, SEAL), "the records seal and authority with the data key and the CA are missing"),
        (
            (AUTHORITY, SEAL, HEADER),
            "the records seal and authority with the data key and the CA are missing",
        ),
    ],
)
def test_lost_ca_is_not_replaced_by_another_one(tmp_path: Path, lost: tuple[Key, ...], words: str) -> None:
    """A start is refused with the fingerprint of the lost CA, and writes nothing."""
    memory = Memory()
    with LoopThread() as thread:
        one = _opened(thread, memory, tmp_path / "one")
        issue_proxy(one.authority, one.ledger, NAME, timedelta(hours=1), NOW)
        fingerprint = "unknown" if HEADER in lost else one.authority.fingerprint
        for key in lost:
            del memory.records[key]
        before = dict(memory.records)
        with pytest.raises(StateError) as refused:
            _opened(thread, memory, tmp_path / "two")
    assert str(refused.value).startswith(
        f"{words}, but the shared ledger belongs to the CA with the fingerprint {fingerprint}, and has "
        "records of 1 proxies and 0 services: restore the missing records from a backup"
    )
    assert memory.records == before


def test_directory_of_a_server_of_another_mesh_is_refused(tmp_path: Path) -> None:
    """The sentence has the fingerprints of both CAs, and the other store is not changed."""
    ours, other, empty = Memory(), Memory(), Memory()
    with LoopThread() as thread:
        one = _opened(thread, ours, tmp_path / "one")
        two = _opened(thread, other, tmp_path / "two")
        before = dict(other.records)
        with pytest.raises(StateError) as refused:
            _opened(thread, other, tmp_path / "one")
        assert other.records == before
        with pytest.raises(
            StateError, match=f"CA {one.authority.fingerprint}, but the shared store has no CA"
        ):
            _opened(thread, empty, tmp_path / "one")
        assert empty.records == {}
        assert _opened(thread, ours, tmp_path / "one").made is False
    state = tmp_path / "one"
    assert str(refused.value) == (
        f"the state directory {state} belongs to a mesh with the CA {one.authority.fingerprint}, but the "
        f"shared store has another mesh, with the CA {two.authority.fingerprint}: correct the settings of "
        f"the store, or, if this server should join the other mesh, remove the directory {state}"
    )


def test_first_starts_at_once_make_one_mesh(tmp_path: Path) -> None:
    """Four servers start on an empty store: one makes the CA, and no record of it looks like a loss."""
    memory, together = Memory(), threading.Barrier(4)
    opened_by: list[AuthorityWithLedger] = []

    def start(name: str) -> None:
        together.wait()
        opened_by.append(_opened(thread, memory, tmp_path / name))

    with LoopThread() as thread:
        threads = [threading.Thread(target=start, args=(str(number),)) for number in range(4)]
        for item in threads:
            item.start()
        for item in threads:
            item.join()
    assert len(opened_by) == 4
    assert len({server.authority.fingerprint for server in opened_by}) == 1
