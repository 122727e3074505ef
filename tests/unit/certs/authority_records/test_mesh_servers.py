"""Tests of several servers of one mesh on one store: one CA, the same certificates, and no readable key."""

from collections.abc import Iterator
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from certs.authority_records.data_key import SEAL
from certs.renewal import renew_at
from certs.roots.rotation import Rotation, advanced
from meshwright.records.content import Content
from meshwright.records.contract import Epoch, ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools import leak_forms
from tests.tools.shared_records import LoopThread
from tests.unit.certs.authority_records.mesh_servers import CART, MeshServer, start

pytestmark = pytest.mark.usefixtures("cheap_passphrases")


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    """Provide the event loop of the store."""
    with LoopThread() as running:
        yield running


def started(
    thread: LoopThread,
    memory: Memory,
    name: str,
    now: datetime,
    passphrase: bytes | None = None,
    turn: int = 0,
) -> MeshServer:
    """Start a server, which follows the records."""
    server = start(MemoryRecords(memory, ReplicaId(name)), name, thread.loop, now, passphrase, turn)
    thread.start(server.pairs.follow())
    return server


def test_servers_of_one_mesh_have_one_ca_and_one_certificate_for_a_service(
    thread: LoopThread, now: datetime
) -> None:
    """A proxy that moves gets the bytes that it has, in every stage of a root rotation too."""
    memory = Memory()
    one, two = (started(thread, memory, name, now) for name in ("one", "two"))
    seen: list[tuple[bytes, bytes]] = []

    def look() -> None:
        assert one.authority.trust_bundle() == two.authority.trust_bundle()
        certificates = {server.certificate(now) for server in (one, two, one)}
        certificates.add(started(thread, memory, f"later-{len(seen)}", now).certificate(now))
        assert len(certificates) == 1
        seen.extend(certificates)

    look()
    one.store.lead(Epoch(1))
    rotation: Rotation | None = one.authority.begin(now)
    while rotation is not None:
        two.authority.look(now)
        look()
        rotation = advanced(rotation, now)
        one.authority.step(rotation, now)
    two.authority.look(now)
    look()
    # One for the first CA, and one for the second, which signs from the second stage on.
    assert (len(seen), len(set(seen))) == (5, 2)


def test_servers_agree_again_after_one_was_behind_in_a_root_rotation(
    thread: LoopThread, now: datetime
) -> None:
    """It signed with the former CA, and replaced the certificate of the server that was ahead."""
    memory = Memory()
    one, two = (started(thread, memory, name, now) for name in ("one", "two"))
    rotation = one.authority.begin(now)
    two.authority.look(now)
    one.authority.step(advanced(rotation, now), now)
    assert one.certificate(now) != two.certificate(now)
    two.authority.look(now)
    for server in (two, one):
        server.manager.compare(CART)
        server.certificate(now)
    assert one.certificate(now) == two.certificate(now)


def test_one_server_asks_the_issuer_for_a_renewal(thread: LoopThread, now: datetime) -> None:
    """The others take its certificate. If it is gone, the next one asks in its place, a little later."""
    memory = Memory()
    one, two, three = (
        started(thread, memory, name, now, turn=turn) for turn, name in enumerate(("one", "two", "three"))
    )
    servers = (one, two, three)
    assert len({server.certificate(now) for server in servers}) == 1

    def renewed(at: datetime, *server_list: MeshServer) -> list[int]:
        for server in server_list:
            server.manager.compare(CART)
            server.certificate(at)
        return [server.manager.issued for server in servers]

    def due(turn: int) -> datetime:
        held = one.manager.get(CART)
        assert held is not None
        return renew_at(held, turn)

    at = due(0)
    assert renewed(at, three, two, one, two, three) == [2, 0, 0]
    assert len({server.certificate(at) for server in servers}) == 1
    at, late = due(0), due(1)
    assert renewed(at, three, two) == [2, 0, 0]
    assert renewed(late, three, two, three) == [2, 1, 0]


def test_no_private_key_and_no_data_key_is_readable_in_any_record(thread: LoopThread, now: datetime) -> None:
    """Without a passphrase only the record `seal` has the data key, and with one no record has it."""
    memory = Memory()
    with capture_logs() as logs:
        one, two = (started(thread, memory, name, now) for name in ("one", "two"))
        one.authority.begin(now)
        certificate = two.certificate(now)
        state = one.store.read().state
        keys = [certificate[1], *(ca.key.reveal() for ca in (state.ca, state.other))]  # type: ignore[union-attr]
        secrets = {str(number): leak_forms.of_key(key) for number, key in enumerate(keys)}
        stored = Content.decode(memory.records[SEAL].content).fields["data_key"]
        assert isinstance(stored, str)
        secrets["data key"] = bytes.fromhex(stored)
        assert found(memory, secrets) == {SEAL: ["data key: hex"]}
        three = started(thread, memory, "three", now, b"correct horse")
    assert (three.certificate(now), three.authority.fingerprint) == (certificate, one.authority.fingerprint)
    assert found(memory, secrets) == {}
    assert leak_forms.seen(f"{logs} {one!r} {memory!r}".encode(), secrets) == []
    assert len(memory.records) == 3


def found(memory: Memory, secrets: dict[str, bytes]) -> dict[str, list[str]]:
    """Return the secrets that can be read in each record, and PEM of any private key."""
    contents = {key: record.content for key, record in memory.records.items()}
    assert not any(b"PRIVATE KEY" in content for content in contents.values())
    return {key: seen for key, content in contents.items() if (seen := leak_forms.seen(content, secrets))}
