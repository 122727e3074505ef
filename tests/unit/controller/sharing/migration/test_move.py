"""Tests of the move of a state directory's mesh into a shared store, and of what follows."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from certs.custody import AuthorityWithLedger, Custody, opened, rebuilt
from certs.errors import StateError
from certs.proxy import issue_proxy
from certs.shared_records.custody import SharedStores, open_shared
from certs.state.directory_marks import MOVED_FILE
from certs.state.shared_mark import SHARED_FILE
from meshwright.controller.settings.settings import Settings, load
from meshwright.controller.sharing.migration.move import move
from meshwright.mesh.identity import ProxyName
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import MemoryRecords
from meshwright.transfer.store_writer import OtherMeshError, WriteCount
from tests.tools.shared_records import LoopThread
from tests.unit.certs.authority_files.steps import begin
from tests.unit.transfer.meshes import DOMAIN, NOW, Store, cheap_passphrases

NAME = ProxyName.parse("a.store.shop")


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    """Return the thread with the event loop of the store."""
    with LoopThread() as running:
        yield running


@pytest.fixture
def store(thread: LoopThread) -> Store:
    """Return an empty store."""
    return Store(thread)


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive keys from passphrases in no time, because the cost is a parameter of a stored key."""
    cheap_passphrases(monkeypatch)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return the settings of a server of several."""
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("secret words\n")
    passphrase.chmod(0o600)
    flags = {"state": tmp_path / "state", "trust_domain": DOMAIN, "kubernetes": True, "store": "kubernetes"}
    return load({**flags, "key_passphrase_file": passphrase})


@pytest.fixture
def serial(settings: Settings) -> str:
    """Return the serial of a proxy certificate that the only server of a directory has issued."""
    with opened(settings.state, DOMAIN, NOW) as authority:
        serial = issue_proxy(authority.authority, authority.ledger, NAME, timedelta(hours=1), NOW).serial
        authority.first.note(authority.ledger)
        return serial


def _opened(store: Store, settings: Settings) -> AuthorityWithLedger:
    """Open the shared CA and ledger as a server does after a move."""
    replica, passphrase = ReplicaId("server"), settings.key_passphrase_file
    records = MemoryRecords(store.memory, replica)
    stores = SharedStores.open(records, replica, store.thread.loop, settings.state, passphrase)
    store.thread.start(stores.ledger.follow(lambda _: None), stores.pairs.follow())
    store.thread.run(stores.pairs.listed())
    return open_shared(stores, settings.state, DOMAIN, NOW, passphrase)


def _moved(store: Store, settings: Settings) -> WriteCount | None:
    client = replace(store.client(), state=settings.state, passphrase=settings.key_passphrase_file)
    return move(settings, client, lambda: NOW)


def test_servers_use_the_moved_mesh(store: Store, settings: Settings, serial: str) -> None:
    """The CA and the ledger are the directory's, and a second start moves nothing."""
    assert _moved(store, settings) == WriteCount(2, 2)
    server = _opened(store, settings)
    assert [entry.serial for entry in server.ledger.entries()] == [serial]
    assert (server.made, server.first.read(), server.ledger.authority()) == (
        False,
        serial,
        server.authority.fingerprint,
    )
    before = store.contents()
    assert _moved(store, settings) is None
    _opened(store, settings)
    assert store.contents() == before


def test_moved_directory_is_no_mesh_any_more(store: Store, settings: Settings, serial: str) -> None:
    """The sentence says where the mesh is, and how to go back."""
    del serial
    _moved(store, settings)
    root, state = store.client().root(), settings.state
    with pytest.raises(StateError) as refused, opened(state, DOMAIN, NOW):
        pass
    assert str(refused.value) == (
        f"the mesh of {state} (CA {root}) was moved into the store kubernetes at 2031-05-06T07:08:09+00:00: "
        "start the server with the setting store kubernetes. To go back to a directory, run `meshwright "
        "state export` with this setting, and `meshwright state import` into an empty directory"
    )
    with pytest.raises(StateError, match="was moved into the store kubernetes"):
        rebuilt(state)
    (state / MOVED_FILE).write_text("{}")
    with pytest.raises(StateError, match=r"moved.json is damaged: field root is missing. The mesh of this"):
        _moved(store, settings)


def test_move_that_died_before_the_mark_is_finished(store: Store, settings: Settings, serial: str) -> None:
    """What the directory's server has done since is added to the store: here a revocation."""
    _moved(store, settings)
    (settings.state / MOVED_FILE).unlink()
    with opened(settings.state, DOMAIN, NOW, custody=Custody(settings.key_passphrase_file)) as authority:
        authority.ledger.revoke(serial, NOW, "stolen")
    assert _moved(store, settings) == WriteCount(2, 1)
    (entry,) = _opened(store, settings).ledger.entries()
    assert (entry.revoked_at, entry.revoked_why) == (NOW, "stolen")


def test_use_by_an_older_program_is_moved_too(store: Store, settings: Settings, serial: str) -> None:
    """After a rollback by one release, the older server knows no mark: its revocations count in the end."""
    _moved(store, settings)
    _opened(store, settings)
    mark, shared = settings.state / MOVED_FILE, settings.state / SHARED_FILE
    at, contents = mark.stat().st_mtime_ns, {path: path.read_bytes() for path in (mark, shared)}
    for path in contents:
        path.unlink()
    with opened(settings.state, DOMAIN, NOW, custody=Custody(settings.key_passphrase_file)) as authority:
        authority.ledger.revoke(serial, NOW, "stolen")
    for path, content in contents.items():
        path.write_bytes(content)
    os.utime(mark, ns=(at, at))
    assert _moved(store, settings) == WriteCount(2, 1)
    assert _moved(store, settings) is None
    (entry,) = _opened(store, settings).ledger.entries()
    assert entry.revoked_why == "stolen"


def test_emptied_store_does_not_get_another_ca(store: Store, settings: Settings, serial: str) -> None:
    """A server whose mesh was moved does not make a new mesh, because all proxies would be refused."""
    del serial
    _moved(store, settings)
    root = store.client().root()
    store.memory.records.clear()
    with pytest.raises(StateError) as refused:
        _opened(store, settings)
    assert str(refused.value) == (
        f"the mesh of {settings.state} (CA {root}) was moved into the store kubernetes at "
        "2031-05-06T07:08:09+00:00, but this store has no mesh: check the settings of the store, or restore "
        "a backup with `meshwright state import`. To move the older state in this directory once more, "
        f"remove {settings.state / MOVED_FILE}"
    )
    assert store.contents() == {}
    (settings.state / MOVED_FILE).unlink()
    assert _moved(store, settings) == WriteCount(2, 2)


def test_directory_with_another_ca_stays_as_it_is(store: Store, settings: Settings, serial: str) -> None:
    """The server of the directory can go on."""
    _opened(store, load({**settings.model_dump(exclude_unset=True), "state": settings.state.parent / "b"}))
    with pytest.raises(OtherMeshError, match=r"the store has a mesh with the CA \w{64}, and this mesh has"):
        _moved(store, settings)
    assert not (settings.state / MOVED_FILE).exists()
    with opened(settings.state, DOMAIN, NOW, custody=Custody(settings.key_passphrase_file)) as authority:
        assert authority.ledger.entry(serial) is not None


def test_root_rotation_moves_too(store: Store, settings: Settings, serial: str) -> None:
    """The stage and the other CA are in the store, and both roots are trusted."""
    del serial
    rotation = begin(settings.state, DOMAIN, NOW)
    _moved(store, settings)
    server = _opened(store, settings)
    assert server.store.read().state.rotation == rotation
    assert (server.authority.fingerprint, server.authority.other) == (rotation.signer, rotation.other)
    assert server.authority.trust_bundle().count(b"BEGIN CERTIFICATE") == 2
    assert server.opened_authority.why_not == ""
