"""Tests of a mesh's state on its way between state directories and stores."""

import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings

from certs.ledger.records.header import HEADER
from meshwright.enrolment.store.token_fields import given_back
from meshwright.records.content import Content
from meshwright.records.contract import ReplicaId
from meshwright.records.key import Key
from meshwright.records.memory import MemoryRecords
from meshwright.records.update import Writer, update
from meshwright.transfer.mesh_state import MeshState, decode, encode
from tests.tools.hypothesis_profiles import examples
from tests.tools.shared_records import LoopThread
from tests.unit.transfer.meshes import (
    HOUR,
    NOW,
    Store,
    entry,
    mesh,
    meshes,
    pair,
    read,
    small_mesh,
    token,
    write,
)


@given(meshes())
@settings(max_examples=examples(3, fresh=24), deadline=None)
def test_each_place_has_the_same_state(thread: LoopThread, value: MeshState) -> None:
    """A directory, a store, a directory after the store, and a store after the store have equal exports."""
    with tempfile.TemporaryDirectory() as folder:
        one, back = Path(folder, "one"), Path(folder, "back")
        write(one, value)
        first, second = Store(thread), Store(thread)
        first.write(read(one))
        write(back, first.read())
        second.write(first.read())
        places = (read(one), first.read(), read(back), second.read())
        assert places == (value,) * 4
        assert {encode(replace(place, data_key=None)) for place in places} == {encode(value)}


@given(meshes())
@settings(max_examples=examples(10, fresh=80), deadline=None)
def test_content_of_a_file_is_the_state(value: MeshState) -> None:
    """Nothing is lost in the form inside a file."""
    assert decode(encode(value)) == value


def test_store_encrypts_all_private_keys(store: Store) -> None:
    """No private key is in the store, and no secret of the mesh in what is printed."""
    value = small_mesh()
    store.write(value)
    assert not [key for key, content in store.contents().items() if b"PRIVATE KEY" in content]
    secret = pair("cart").key.reveal().decode().splitlines()[1]
    assert secret in encode(value).decode()
    assert secret not in repr(value)


def test_restored_store_has_the_same_data_key(store: Store, thread: LoopThread) -> None:
    """Servers know the mesh in a store by the data key, which is in a backup of a store."""
    store.write(small_mesh())
    other = Store(thread)
    other.write(decode(encode(store.read())))
    assert other.read().data_key == store.read().data_key is not None
    assert encode(other.read()) == encode(store.read())


def test_store_without_the_first_certificate_can_go_back(store: Store, tmp_path: Path) -> None:
    """A store forgets old certificates, and a directory needs one that is in its ledger."""
    value = mesh(entries=(entry("a1"), entry("b2", "b1", issued_at=NOW + HOUR)))
    store.write(value)
    store.memory.records.pop(Key("proxies/shop/cart/a1"))
    assert store.read().first == (int(NOW.timestamp()), "a1")
    write(tmp_path / "state", store.read())
    there = read(tmp_path / "state")
    assert (there.authority.first_proxy, [each.serial for each in there.entries]) == ("b2", ["b2"])


def test_certificate_without_signer_gets_the_first_one(store: Store) -> None:
    """Records of older servers have no signer, which is the ledger's first CA."""
    store.write(mesh(entries=(entry("a1", signer=""),)))
    record = store.memory.records[HEADER]
    header = Content.decode(record.content)
    changed = replace(header, fields={**header.fields, "first_authority": "ab12"})
    store.memory.records[HEADER] = replace(record, content=changed.encode())
    assert [each.signer for each in store.read().entries] == ["ab12"]


def test_proxy_with_too_many_certificates_keeps_the_needed_ones(store: Store) -> None:
    """A ledger in a file has each certificate ever, a record has a limit: revocations and progress stay."""
    day = timedelta(days=1)
    old = [
        entry(
            f"{number:x}",
            issued_at=NOW - 900 * day + number * HOUR,
            not_after=NOW - 899 * day + number * HOUR,
        )
        for number in range(1, 700)
    ]
    old[0] = replace(old[0], claimed_at=old[0].issued_at, admitted_at=old[0].issued_at)
    old[1] = replace(old[1], claimed_at=old[1].issued_at)
    old[2] = replace(old[2], revoked_at=NOW, not_after=NOW - 365 * day)
    old[3] = replace(old[3], revoked_at=NOW, not_after=NOW - 367 * day)
    value = mesh(entries=(*old, entry("ffff")))
    store.write(value)
    assert [each.serial for each in store.read().entries] == ["1", "2", "3", "ffff"]


def test_use_of_a_token_that_was_given_back_is_free(store: Store, thread: LoopThread) -> None:
    """A failed join gives its use back. Export and repeated import go on, and another key has the use."""
    used = mesh(tokens=(token(1, {"5f" * 32: NOW}),))
    freed = mesh(tokens=(token(1, {}),))
    store.write(used)
    (key,) = (key for key in store.memory.records if "/uses/" in key)
    client = MemoryRecords(store.memory, ReplicaId("server"))
    thread.run(update(client, key, lambda fields: given_back(fields or {}), Writer(ReplicaId("server"))))
    assert replace(store.read(), data_key=None) == freed
    other = replace(freed, tokens=(token(1, {"77" * 32: NOW}),))
    store.write(other)
    assert replace(store.read(), data_key=None) == other
