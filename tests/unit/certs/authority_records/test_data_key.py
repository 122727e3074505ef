"""Tests of the shared data key: its first server, its passphrase, and a record that is lost or damaged."""

import threading
from collections.abc import Iterator
from typing import Final

import pytest
from structlog.testing import capture_logs

from certs.authority_records.data_key import SEAL, RecordedDataKey
from certs.authority_records.fields import AUTHORITY
from certs.errors import StateError
from meshwright.records.content import Content
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import MemoryRecords
from tests.tools.shared_records import Fault, FaultyRecords, LoopThread, away
from tests.unit.certs.authority_records.servers import AuthorityServers

pytestmark = pytest.mark.usefixtures("cheap_passphrases")

WORDS: Final = b"correct horse"
SECRET: Final = b"a private key"


@pytest.fixture
def servers() -> Iterator[AuthorityServers]:
    """Provide servers of one store."""
    with LoopThread() as thread:
        yield AuthorityServers(thread)


def data_key(
    servers: AuthorityServers, passphrase: bytes | None = None, client: FaultyRecords | None = None
) -> RecordedDataKey:
    """Return the shared data key as a server opens it."""
    client = client or FaultyRecords(MemoryRecords(servers.memory, ReplicaId("a")))
    return RecordedDataKey(client, ReplicaId("a"), servers.thread.loop, passphrase)


def content(servers: AuthorityServers) -> bytes:
    """Return the content of the record."""
    return servers.memory.records[SEAL].content


def plain_key(servers: AuthorityServers) -> str:
    """Return the data key in the record, as it is."""
    text = Content.decode(content(servers)).fields["data_key"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("passphrase", [None, WORDS])
def test_all_servers_have_the_data_key_of_the_first(
    servers: AuthorityServers, passphrase: bytes | None
) -> None:
    """This holds for servers that start at the same moment, and for later ones."""
    together, texts = threading.Barrier(4), list[str]()

    def start() -> None:
        together.wait()
        texts.append(data_key(servers, passphrase).open().closed(SECRET, "authority"))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seal = data_key(servers, passphrase).open()
    assert [seal.opened(text, "authority") for text in texts] == [SECRET] * 4
    assert servers.memory.writes == 1


def test_passphrase_encrypts_the_data_key(servers: AuthorityServers) -> None:
    """The record is then worth nothing without it; a missing or wrong one ends the start."""
    text = data_key(servers, WORDS).open().closed(SECRET, "authority")
    before = content(servers)
    assert sorted(Content.decode(before).fields) == ["mesh", "wrapped"]
    with pytest.raises(
        StateError, match="data key of the shared records is encrypted; set key_passphrase_file"
    ):
        data_key(servers).open()
    with pytest.raises(
        StateError, match="passphrase does not decrypt the data key in the record seal; use the"
    ):
        data_key(servers, b"wrong horse").open()
    assert data_key(servers, WORDS).open().opened(text, "authority") == SECRET
    assert content(servers) == before


def test_data_key_without_a_passphrase_is_encrypted_by_the_first_server_with_one(
    servers: AuthorityServers,
) -> None:
    """Nothing that is encrypted with it changes, and it is not in the record any more."""
    text = data_key(servers).open().closed(SECRET, "authority")
    plain = plain_key(servers)
    servers.put(SEAL, {**Content.decode(content(servers)).fields, "new": 5})
    with capture_logs() as logs:
        assert data_key(servers, WORDS).open().opened(text, "authority") == SECRET
        assert data_key(servers, WORDS).open().opened(text, "authority") == SECRET
    assert [log["event"] for log in logs] == ["shared data key encrypted"]
    assert (plain in str(content(servers)), sorted(Content.decode(content(servers)).fields)) == (
        False,
        ["mesh", "new", "wrapped"],
    )
    assert plain not in str(logs)


def test_records_of_a_server_that_began_meanwhile_are_no_loss(servers: AuthorityServers) -> None:
    """Between two reads of a first start, another server makes the data key and its first records."""

    def require_new() -> None:
        data_key(servers).open()
        raise StateError("the CA is lost")

    text = data_key(servers).open(require_new).closed(SECRET, "authority")
    assert data_key(servers).open().opened(text, "authority") == SECRET


def test_mesh_that_is_not_new_gets_no_data_key(servers: AuthorityServers) -> None:
    """The reason for the refusal is the error of the start."""

    def require_new() -> None:
        raise StateError("the CA is lost")

    with pytest.raises(StateError, match="the CA is lost"):
        data_key(servers).open(require_new)
    assert servers.memory.records == {}


def test_lost_data_key_is_not_replaced(servers: AuthorityServers) -> None:
    """With another one the keys in the records would be lost, and the cause hidden."""
    data_key(servers).open()
    servers.put(AUTHORITY, {"ca": {}})
    del servers.memory.records[SEAL]
    with pytest.raises(StateError, match="the record seal is missing; restore the record seal from a backup"):
        data_key(servers).open()
    assert list(servers.memory.records) == [AUTHORITY]


@pytest.mark.parametrize(
    "stored",
    [
        b"damaged",
        b'{"form": 2, "count": 1, "epoch": 0, "by": "b", "fields": {}}',
        b'{"form": 1, "count": 1, "epoch": 0, "by": "b", "fields": {}}',
        b'{"form": 1, "count": 1, "epoch": 0, "by": "b", "fields": {"data_key": "5f2c"}}',
        b'{"form": 1, "count": 1, "epoch": 0, "by": "b", "fields": {"data_key": "5f2cx"}}',
        b'{"form": 1, "count": 1, "epoch": 0, "by": "b", "fields": {"wrapped": {"kdf": "scrypt"}}}',
        b'{"form": 1, "count": 1, "epoch": 0, "by": "b", "fields": {"wrapped": 5}}',
    ],
)
def test_damaged_data_key_is_named_and_not_replaced(servers: AuthorityServers, stored: bytes) -> None:
    """The error has no part of the content."""
    servers.put_content(SEAL, stored)
    with pytest.raises(StateError, match=r"record seal(:| is damaged: )") as error:
        data_key(servers, WORDS).open()
    assert content(servers) == stored
    assert "5f2c" not in str(error.value)


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_data_key_of_a_write_without_an_answer_is_made_once(servers: AuthorityServers, fault: Fault) -> None:
    """The server finds its own, and does not encrypt with another."""
    client, faults = FaultyRecords(MemoryRecords(servers.memory, ReplicaId("a"))), [fault]
    client.fault = lambda: faults.pop() if faults else Fault.NONE
    text = data_key(servers, client=client).open().closed(SECRET, "authority")
    assert data_key(servers).open().opened(text, "authority") == SECRET
    assert (servers.memory.writes, faults) == (1, [])


def test_store_that_is_away_makes_no_data_key(servers: AuthorityServers) -> None:
    """The start can be repeated."""
    client = FaultyRecords(MemoryRecords(servers.memory, ReplicaId("a")))
    with (
        away(client),
        pytest.raises(StateError, match="shared data key cannot be used: the store of the test"),
    ):
        data_key(servers, client=client).open()
    assert servers.memory.records == {}
    data_key(servers, client=client).open()
