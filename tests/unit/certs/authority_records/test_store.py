"""Tests of the shared state of the authority: leaders, lost answers, damage, and secrets."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

import pytest
from structlog.testing import capture_logs

from certs.authority_records.fields import AUTHORITY
from certs.authority_records.store import RecordedAuthority
from certs.errors import StateError
from certs.issuers import succession
from certs.issuers.root import new_root
from certs.issuers.stored_ca import StoredCa, Unreadable
from certs.issuers.succession import Succession
from certs.keys.bundle import TrustBundle
from certs.keys.material import PrivateKey
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_state import AuthorityState
from certs.roots.authority_store import CaSlot, FormerLeaderError, Overtaken, Revision, changed
from certs.roots.rotation import Fingerprint, aborted, advanced
from certs.state.record_proofs import with_proof
from certs.state.sealing import RecordSeal, new_data_key
from meshwright.mesh.names import Namespace, SecretName, TrustDomain
from meshwright.records.content import Content
from meshwright.records.contract import Epoch, Record, ReplicaId, StoreUnavailableError
from meshwright.records.contract import Revision as RecordRevision
from meshwright.records.key import Key
from meshwright.records.memory import MemoryRecords
from meshwright.records.threads import CallOnLoopError
from tests.tools import faulty_records, leak_forms
from tests.tools.shared_records import Fault, LoopThread, away, no_fault
from tests.unit.certs.authority_records.servers import DATA_KEY, AuthorityServers

DOMAIN: Final = TrustDomain("mesh.example")
NEWER: Final = b'{"form": 2, "count": 1, "epoch": 0, "by": "b", "fields": {}}'


@pytest.fixture
def servers() -> Iterator[AuthorityServers]:
    """Provide servers of one store."""
    with LoopThread() as thread:
        yield AuthorityServers(thread)


def content_of(servers: AuthorityServers) -> Content:
    """Return the content of the record as it is in the store."""
    return Content.decode(servers.memory.records[AUTHORITY].content)


def test_servers_that_start_at_the_same_moment_make_one_ca(servers: AuthorityServers, now: datetime) -> None:
    """One of them creates the record, and the others take its CA. The record is written once."""
    stores = [servers.open() for _ in range(4)]
    together, fingerprints = threading.Barrier(len(stores)), list[str]()

    def start(store: RecordedAuthority) -> None:
        together.wait()
        fingerprints.append(ChangingAuthority(store, DOMAIN, now).fingerprint)

    threads = [threading.Thread(target=start, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(fingerprints), len(set(fingerprints)), servers.memory.writes) == (4, 1, 1)


def test_step_of_a_former_leader_is_refused(servers: AuthorityServers, now: datetime) -> None:
    """Its notes without leadership are taken, and it follows the steps of its successor."""
    first, second = servers.open(), servers.open()
    former, leader = ChangingAuthority(first, DOMAIN, now), ChangingAuthority(second, DOMAIN, now)
    of_former = first.lead(Epoch(3))
    rotation = former.begin(now, store=of_former)
    of_leader = second.lead(Epoch(4))
    before = second.read()
    with pytest.raises(
        FormerLeaderError, match=r"another server, which leads the mesh now: this server led in epoch 3"
    ):
        former.step(advanced(rotation, now), now, of_former)
    with pytest.raises(FormerLeaderError, match="leads the mesh now"):
        changed(of_former, lambda state: replace(state, declared_roots={}, rotation=None, other=None))
    assert (second.read(), former.rotation) == (before, rotation)
    issuers = Succession("vault:a", TrustBundle.from_pems([former.trust_bundle()]), now)
    changed(first, lambda state: replace(state, first_proxy="0a", service_issuers=issuers))
    assert leader.look(now)
    leader.step(step := advanced(rotation, now), now, of_leader)
    assert (former.look(now), former.rotation, content_of(servers).epoch) == (True, step, 4)
    assert second.read().state.first_proxy == "0a"


@pytest.mark.parametrize("epoch", [1, 6, 7, 9])
def test_leader_is_not_locked_out_by_the_epoch_in_the_record(
    servers: AuthorityServers, now: datetime, epoch: int
) -> None:
    """After a restore the record may be of a later epoch than the store's own count, which began anew."""
    store = servers.open()
    authority = ChangingAuthority(store, DOMAIN, now)
    former = store.lead(Epoch(6))
    leader = store.lead(Epoch(epoch))
    with pytest.raises(FormerLeaderError):
        authority.begin(now, store=former)
    rotation = authority.begin(now, store=leader)
    assert (content_of(servers).epoch, store.read().state.rotation) == (max(epoch, 7), rotation)


def test_command_at_any_server_is_compared_with_the_step_that_the_server_knows(
    servers: AuthorityServers, now: datetime
) -> None:
    """It changes the root beside the leader, keeps the leader's epoch, and never repeats a step."""
    other, leader = servers.open(), servers.open()
    authority, leading = ChangingAuthority(other, DOMAIN, now), ChangingAuthority(leader, DOMAIN, now)
    term = leader.lead(Epoch(1))
    rotation = authority.begin(now)
    assert (content_of(servers).epoch, leader.read().state.rotation) == (1, rotation)
    with pytest.raises(Overtaken):
        leading.begin(now, store=term)
    leading.step(step := advanced(rotation, now), now, term)
    with pytest.raises(Overtaken):
        authority.step(aborted(rotation, now), now)
    assert (authority.rotation, leader.read().state.rotation) == (step, step)


def test_late_write_of_a_former_leader_changes_nothing(servers: AuthorityServers, now: datetime) -> None:
    """The request was under way when the next leader wrote its epoch, and arrives afterwards."""
    network = faulty_records.Network()
    client = faulty_records.FaultyRecords(MemoryRecords(servers.memory, ReplicaId("former")), network)
    slow = RecordedAuthority(client, ReplicaId("former"), servers.thread.loop, RecordSeal(DATA_KEY))
    former = ChangingAuthority(slow, DOMAIN, now)
    term = slow.lead(Epoch(1))
    network.script = [faulty_records.Fault.LATER] * 3
    with pytest.raises(StateError, match="the store does not answer"):
        former.begin(now, store=term)
    assert (former.rotation, len(network.delayed)) == (None, 3)
    leader = servers.open()
    leader.lead(Epoch(2))
    before = leader.read()
    servers.run(network.deliver_all())
    assert leader.read() == before
    assert before.state.rotation is None


def test_first_leader_of_an_empty_store_may_make_the_ca(servers: AuthorityServers, now: datetime) -> None:
    """There is nothing to write an epoch into yet."""
    store = servers.open()
    term = store.lead(Epoch(7))
    assert servers.memory.writes == 0
    ChangingAuthority(store, DOMAIN, now).begin(now, store=term)
    assert content_of(servers).epoch == 7


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_write_without_an_answer_is_done_once(servers: AuthorityServers, now: datetime, fault: Fault) -> None:
    """The writer finds its own CA and its own step, and does not take itself for another server."""
    store, faults = servers.open(), list[Fault]()
    servers.clients[0].fault = lambda: faults.pop() if faults else Fault.NONE
    faults.append(fault)
    authority = ChangingAuthority(store, DOMAIN, now)
    faults.append(fault)
    rotation = authority.begin(now)
    faults.append(fault)
    authority.step(second := advanced(rotation, now), now)
    state = servers.open().read().state
    assert (state.rotation, authority.rotation, servers.memory.writes) == (second, second, 3)


def test_step_that_is_overtaken_after_its_answer_was_lost_is_not_repeated(
    servers: AuthorityServers, now: datetime
) -> None:
    """The step took effect, another server took the next one, and the first server follows."""
    one, two = servers.open(), servers.open()
    first, second = ChangingAuthority(one, DOMAIN, now), ChangingAuthority(two, DOMAIN, now)
    rotation = first.begin(now)
    second.look(now)

    def goes_away() -> Fault:
        servers.clients[0].is_away = True
        return Fault.AFTER

    servers.clients[0].fault = goes_away
    with pytest.raises(StateError, match="cannot be used"):
        first.step(advanced(rotation, now), now)
    servers.clients[0].is_away, servers.clients[0].fault = False, no_fault
    assert (first.rotation, second.look(now)) == (rotation, True)
    assert second.rotation is not None
    second.step(third := advanced(second.rotation, now), now)
    with pytest.raises(Overtaken):
        first.step(advanced(rotation, now), now)
    assert (first.rotation, one.read().state.rotation) == (third, third)


def test_step_is_done_if_another_server_begins_to_lead_before_the_answer(
    servers: AuthorityServers, now: datetime
) -> None:
    """The new leader has written its epoch on top of the step, and changed nothing of it."""
    store = servers.open()
    authority = ChangingAuthority(store, DOMAIN, now)
    store.lead(Epoch(1))
    write = servers.clients[0].write

    async def lost_answer(key: Key, content: bytes, before: RecordRevision | None) -> Record:
        step = Content.decode((await write(key, content, before)).content)
        servers.memory.put(key, replace(step, epoch=Epoch(2), count=step.count + 1).encode())
        raise StoreUnavailableError("the answer is lost")

    servers.clients[0].write = lost_answer  # type: ignore[method-assign]
    rotation = authority.begin(now)
    assert (authority.rotation, store.read().state.rotation) == (rotation, rotation)
    assert content_of(servers).epoch == 2


def test_nothing_is_lost_while_the_store_is_away(servers: AuthorityServers, now: datetime) -> None:
    """The server signs on with its CA, and takes the step later."""
    store = servers.open()
    authority = ChangingAuthority(store, DOMAIN, now)
    stored = store.read()
    with away(servers.clients[0]):
        calls: tuple[Callable[[], object], ...] = (
            store.read,
            store.recover,
            lambda: store.lead(Epoch(1)),
            lambda: store.replace(stored.revision, replace(stored.state, first_proxy="0a")),
            lambda: authority.begin(now),
            lambda: authority.look(now),
            lambda: ChangingAuthority(store, DOMAIN, now),
        )
        for call in calls:
            with pytest.raises(
                StateError, match="shared state of the authority cannot be used: the store of"
            ):
                call()
        assert authority.rotation is None
    assert store.read() == stored
    assert authority.begin(now) == store.read().state.rotation


@pytest.mark.parametrize("content", [NEWER, b"damaged", b"{}"])
def test_unreadable_or_newer_record_is_never_overwritten(
    servers: AuthorityServers, now: datetime, content: bytes
) -> None:
    """A start ends with the name of the record, and makes no other CA."""
    store = servers.open()
    servers.put_content(AUTHORITY, content)
    for call in (store.read, store.recover, lambda: ChangingAuthority(store, DOMAIN, now)):
        with pytest.raises(StateError, match="record authority: "):
            call()
    with pytest.raises(StateError, match="record authority: "):
        store.lead(Epoch(1))
    assert servers.memory.records[AUTHORITY].content == content


def test_fields_of_a_newer_version_are_kept(servers: AuthorityServers, now: datetime) -> None:
    """This holds beside the known fields and within them, also where the CAs change places."""
    store = servers.open()
    authority = ChangingAuthority(store, DOMAIN, now)
    rotation = authority.begin(now)
    fields = content_of(servers).fields

    def extended(name: str) -> dict[str, object]:
        value = fields[name]
        assert isinstance(value, dict)
        return {**value, "new": name}

    parts = {name: extended(name) for name in ("ca", "other", "rotation")}
    servers.put(AUTHORITY, {**fields, **parts, "new": 5})
    again = ChangingAuthority(store, DOMAIN, now)
    again.step(advanced(rotation, now), now)
    after = content_of(servers).fields
    expected = {
        **fields,
        "ca": parts["other"],
        "other": parts["ca"],
        "rotation": after["rotation"],
        "new": 5,
    }
    assert after == with_proof(expected, AUTHORITY, RecordSeal(DATA_KEY))
    assert isinstance(after["rotation"], dict)
    assert after["rotation"]["new"] == "rotation"
    again.step(None, now)
    assert sorted(content_of(servers).fields) == ["ca", "new", "proof"]


@pytest.mark.parametrize("damage", ["cut off", "no text", "no object"])
def test_damaged_ca_is_named_and_never_replaced(
    servers: AuthorityServers, now: datetime, damage: str
) -> None:
    """A start ends with the field and the remedy. All other fields hold."""
    store = servers.open()
    ChangingAuthority(store, DOMAIN, now)
    changed(store, lambda state: replace(state, first_proxy="0a"))
    fields = content_of(servers).fields
    ca = fields["ca"]
    assert isinstance(ca, dict)
    match damage:
        case "no object":
            servers.put(AUTHORITY, {**fields, "ca": "damaged"})
        case _:
            servers.put(
                AUTHORITY, {**fields, "ca": {**ca, "key": 5 if damage == "no text" else ca["key"][:20]}}
            )
    before = servers.memory.records[AUTHORITY]
    state = store.read().state
    assert state.ca is not None
    assert isinstance(state.ca.key, Unreadable)
    assert (state.first_proxy, isinstance(state.ca.certificate, bytes)) == ("0a", damage != "no object")
    with pytest.raises(
        StateError, match=r"field ca.* of the record authority is damaged: .*; restore the record"
    ):
        ChangingAuthority(store, DOMAIN, now)
    assert servers.memory.records[AUTHORITY] == before
    changed(store, lambda state: replace(state, first_proxy="0b"))
    assert content_of(servers).fields["ca"] == Content.decode(before.content).fields["ca"]


@pytest.mark.parametrize("change", ["roots", "issuers", "declared", "no proof", "another data key"])
def test_state_of_a_program_without_the_data_key_is_refused(
    servers: AuthorityServers, now: datetime, change: str
) -> None:
    """Who may write the record cannot add a root of their own: it is neither trusted nor overwritten."""
    store = servers.open()
    authority = ChangingAuthority(store, DOMAIN, now)
    fields = content_of(servers).fields
    trusted, foreign = authority.trust_bundle(), new_root(DOMAIN, now)
    pem = StoredCa.of(foreign).certificate
    assert isinstance(pem, bytes)
    ca = fields["ca"]
    assert isinstance(ca, dict)
    issuers = json.loads(succession.written(Succession("files", TrustBundle.from_pems([pem]), now)))
    forged = {
        "roots": {**fields, "ca": {**ca, "roots": pem.decode()}},
        "issuers": {**fields, "channel_issuers": issuers},
        "declared": {**fields, "declared_roots": {"mesh/root-1": foreign.fingerprint}},
        "no proof": {name: value for name, value in fields.items() if name != "proof"},
        "another data key": with_proof(fields, AUTHORITY, RecordSeal(new_data_key())),
    }[change]
    servers.put(AUTHORITY, forged, proven=False)
    before = servers.memory.records[AUTHORITY]
    calls: tuple[Callable[[], object], ...] = (
        store.read,
        lambda: authority.look(now),
        lambda: ChangingAuthority(store, DOMAIN, now),
        lambda: authority.begin(now),
    )
    for call in calls:
        with pytest.raises(StateError, match=r"record authority: the field proof does not belong to the"):
            call()
    assert (authority.trust_bundle(), servers.memory.records[AUTHORITY]) == (trusted, before)


def test_deleted_record_is_named_and_the_server_signs_on(servers: AuthorityServers, now: datetime) -> None:
    """The step of a server that still has the CA must not make a record without it."""
    authority = ChangingAuthority(servers.open(), DOMAIN, now)
    fingerprint = authority.fingerprint
    del servers.memory.records[AUTHORITY]
    for call in (lambda: authority.look(now), lambda: authority.begin(now)):
        with pytest.raises(
            StateError, match=r"the record authority has no CA any more; .* restore the CA from"
        ):
            call()
    assert (authority.fingerprint, authority.rotation, servers.memory.records) == (fingerprint, None, {})


def test_unreadable_ca_is_not_stored(servers: AuthorityServers, now: datetime) -> None:
    """A state that was read from a damaged folder must not become the state of all servers."""
    store = servers.open()
    ca = replace(StoredCa.of(new_root(DOMAIN, now)), key=Unreadable("ca.key is damaged"))
    with pytest.raises(StateError, match=r"ca\.key is damaged"):
        changed(store, lambda state: replace(state, ca=ca))
    assert servers.memory.records == {}


def test_intermediate_ca_is_read_as_it_was_written(servers: AuthorityServers, now: datetime) -> None:
    """Its roots are stored beside it."""
    store = servers.open()
    ca = replace(StoredCa.of(new_root(DOMAIN, now)), roots=StoredCa.of(new_root(DOMAIN, now)).certificate)
    state = changed(store, lambda state: replace(state, ca=ca)).state
    assert state == servers.open().read().state == AuthorityState(ca)


def test_parts_have_names_for_messages(servers: AuthorityServers) -> None:
    """An operator finds the field of a message in the record."""
    store = servers.open()
    names = store.names(CaSlot.SIGNER), store.names(CaSlot.OTHER)
    assert [(name.certificate, name.key, name.roots, name.mend) for name in names] == [
        tuple(
            [f"{ca}.{part} of the record authority" for part in ("certificate", "key", "roots")]
            + ["restore the record authority from a backup"]
        )
        for ca in ("ca", "other")
    ]
    assert store.place == "the record authority"


def test_follower_is_told_of_each_write(servers: AuthorityServers, now: datetime) -> None:
    """It is called once at first, and then looks for steps."""
    store, other = servers.open(), servers.open()
    calls: list[None] = []
    servers.thread.start(store.follow(lambda: calls.append(None)))
    assert len(calls) == 1
    ChangingAuthority(other, DOMAIN, now).begin(now)
    other.lead(Epoch(1))
    assert len(calls) == 1 + servers.memory.writes == 4


def test_calls_on_the_event_loop_are_errors(servers: AuthorityServers) -> None:
    """They would wait for themselves for ever."""
    store = servers.open()
    stored = store.read()

    async def work() -> None:
        for call in (store.read, store.recover, lambda: store.replace(stored.revision, stored.state)):
            with pytest.raises(CallOnLoopError):
                call()

    servers.run(work())


def test_no_private_key_is_readable_in_the_store_or_a_log(servers: AuthorityServers, now: datetime) -> None:
    """This covers all contents of a whole root rotation, every encoding, and the errors of damaged ones."""
    store = servers.open()
    contents, texts, secrets = list[bytes](), list[str](), {"data key": DATA_KEY}

    def look() -> None:
        record, stored = servers.memory.records[AUTHORITY], store.read()
        contents.append(record.content)
        texts.append(repr((record, stored, servers.memory, store, store.names(CaSlot.SIGNER))))
        for ca in (stored.state.ca, stored.state.other):
            if ca is not None and isinstance(ca.key, PrivateKey):
                secrets[str(len(secrets))] = leak_forms.of_key(ca.key.reveal())

    with capture_logs() as logs:
        authority = ChangingAuthority(store, DOMAIN, now)
        look()
        rotation = authority.begin(now)
        changed(store, lambda state: replace(state, declared_roots={_secret(): Fingerprint("a")}))
        look()
        authority.step(advanced(rotation, now), now)
        look()
        with pytest.raises(Overtaken) as overtaken:
            store.replace(Revision("an old one"), store.read().state)
        texts.append(repr(overtaken.value) + str(overtaken.value))
        for name in ("ca", "other"):
            servers.put(
                AUTHORITY, {**content_of(servers).fields, name: content_of(servers).fields["rotation"]}
            )
            with pytest.raises(StateError) as error:
                ChangingAuthority(store, DOMAIN, now)
            texts.append(str(error.value))
    texts.append(str(logs))
    assert len(secrets) == 1 + 5
    assert [leak_forms.seen(place, secrets) for place in (*contents, *map(str.encode, texts))] == [[]] * 10
    assert not any(b"PRIVATE KEY" in content for content in contents)


def _secret() -> SecretName:
    return SecretName(Namespace("mesh"), "root-1")
