"""Tests of the contract of authority stores: the behaviour of each one, and of two servers on one store.

Another implementation can be added to those that are run here.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import pytest

from certs.authority_files.store import AuthorityFiles
from certs.errors import StateError
from certs.issuers.root import new_root
from certs.issuers.stored_ca import StoredCa, Unreadable
from certs.issuers.succeeding_issuer import Role
from certs.issuers.succession import FormerIssuer, Succession
from certs.keys.bundle import TrustBundle
from certs.keys.material import PrivateKey
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_state import AuthorityState, is_step
from certs.roots.authority_store import AuthorityStore, Overtaken, changed
from certs.roots.role_succession import RoleSuccession
from certs.roots.rotation import Fingerprint, Rotation, advanced, begun, without
from certs.state.sealing import Seal, new_data_key
from meshwright.mesh.names import Namespace, SecretName, TrustDomain
from tests.tools.hypothesis_profiles import examples
from tests.tools.shared_records import LoopThread
from tests.unit.certs.authority_files.steps import Died, dies_at
from tests.unit.certs.authority_records.servers import AuthorityServers
from tests.unit.certs.roots.memory import MemoryAuthority, Record

DOMAIN: Final = TrustDomain("mesh.example")
CRASHES: Final = 12
"""More than the number of changes of the file system in the longest step."""
MOMENTS: Final = (*range(0, CRASHES - 1, examples(2, fresh=1)), CRASHES - 1)
FIELDS: Final = {
    "rotation": "rotation.json",
    "service_issuers": "issuer.json",
    "channel_issuers": "authority.json",
    "declared_roots": "declared-roots.json",
}
"""The fields that can be damaged, and their files."""


class Stores(Protocol):
    """Factory of stores with one content."""

    def open(self) -> AuthorityStore:
        """Return the store of another server, or of the same one after a restart."""

    def dying(self, number: int) -> AbstractContextManager[None]:
        """Let the process die after `number` changes."""

    def damage(self, name: str) -> str:
        """Damage a field; return the name that a message must have."""


@dataclass
class Files:
    """Factory of stores on one state directory."""

    state: Path
    seal: Seal

    def open(self) -> AuthorityStore:
        """Return another store."""
        return AuthorityFiles(self.state, self.seal)

    @contextmanager
    def dying(self, number: int) -> Iterator[None]:
        """Let one of the calls that change the file system fail."""
        with pytest.MonkeyPatch.context() as patch:
            dies_at(number, patch)
            with suppress(Died):
                yield

    def damage(self, name: str) -> str:
        """Overwrite a file with the beginning of its content."""
        path = self.state / FIELDS[name]
        path.write_bytes(path.read_bytes()[:20])
        return str(path)


@dataclass
class Memory:
    """Factory of stores on one record."""

    record: Record = field(default_factory=Record)

    def open(self) -> AuthorityStore:
        """Return another store."""
        return MemoryAuthority(self.record)

    @contextmanager
    def dying(self, number: int) -> Iterator[None]:
        """Let a write fail before or after the fact."""
        left = iter([False] * number)

        def check() -> None:
            if next(left, True):
                raise Died

        self.record.on_write = check
        with suppress(Died):
            yield
        self.record.on_write = lambda: None

    def damage(self, name: str) -> str:
        """Make one field unreadable."""
        damaged = {name: Unreadable(f"{name} of the record is damaged")}
        self.record.state = replace(self.record.state, **damaged)  # type: ignore[arg-type]
        self.record.count += 1
        return name


@pytest.fixture(params=["files", "sealed files", "memory", "records"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """Provide a factory of stores, of each kind in turn."""
    match request.param:
        case "memory":
            yield Memory()
        case "records":
            with LoopThread() as thread:
                yield AuthorityServers(thread)
        case kind:
            yield Files(tmp_path / "state", Seal(new_data_key() if kind == "sealed files" else None))


@pytest.fixture
def whole(now: datetime) -> AuthorityState:
    """Return a state with every field, in the middle of a root rotation."""
    old, new = new_root(DOMAIN, now), new_root(DOMAIN, now)
    bundle = TrustBundle.from_pems([StoredCa.of(old).trusted])
    former = FormerIssuer(TrustBundle.from_pems([StoredCa.of(new).trusted]), now + timedelta(days=1))
    rotation = begun(Fingerprint(old.fingerprint), Fingerprint(new.fingerprint), now)
    return AuthorityState(
        StoredCa.of(old),
        StoredCa.of(new),
        without(rotation, ["one.cart.shop"], now),
        Succession("vault:a", bundle, now, (former,), is_acknowledged=False),
        Succession("files", bundle, now + timedelta(microseconds=5)),
        "3f9a02",
        {SecretName(Namespace("mesh"), "root-1"): rotation.signer},
    )


def fill(store: AuthorityStore, whole: AuthorityState) -> None:
    """Store a state as servers do: part by part."""
    parts: list[Callable[[AuthorityState], AuthorityState]] = [
        lambda state: replace(state, ca=whole.ca),
        lambda state: replace(state, first_proxy=whole.first_proxy),
        lambda state: replace(state, service_issuers=whole.service_issuers),
        lambda state: replace(state, channel_issuers=whole.channel_issuers),
        lambda state: replace(state, declared_roots=whole.declared_roots),
        lambda state: replace(state, other=whole.other, rotation=whole.rotation),
    ]
    for part in parts:
        before = store.read().state
        assert changed(store, part).state == part(before) != before


def test_new_store_is_empty(stores: Stores) -> None:
    """The first start creates the CA, because there is none."""
    stored = stores.open().read()
    assert (stored.state, stored.state.has_ca) == (AuthorityState(), False)
    assert stores.open().recover() == stores.open().read() == stored


def test_each_part_is_read_as_it_was_written(stores: Stores, whole: AuthorityState) -> None:
    """This holds for each part at once, with all others unchanged, and after a restart."""
    fill(stores.open(), whole)
    again = stores.open()
    assert again.recover().state == again.read().state == whole


def test_root_rotation_exchanges_the_cas_and_removes_the_last_one(
    stores: Stores, whole: AuthorityState, now: datetime
) -> None:
    """The other parts are unchanged, and a removed CA is not stored any more."""
    fill(store := stores.open(), whole)
    rotation = whole.rotation if isinstance(whole.rotation, Rotation) else None
    while rotation is not None:
        rotation = advanced(rotation, now)
        changed(store, partial(AuthorityState.stepped, rotation=rotation))
        state = stores.open().recover().state
        roots = (whole.other, whole.ca) if rotation is not None else (whole.other, None)
        assert state == replace(whole, ca=roots[0], other=roots[1], rotation=rotation)


def test_equal_content_has_one_revision_and_another_content_another(
    stores: Stores, whole: AuthorityState
) -> None:
    """A change that changes no field is not written."""
    store, revisions = stores.open(), set()
    fill(store, whole)
    stored = store.read()
    assert changed(store, replace) == stored
    for serial in ("0a", "0b", "0c"):
        revisions.add(changed(store, partial(replace, first_proxy=serial)).revision)
    assert len({stored.revision, *revisions}) == 4
    assert store.read().revision in revisions


def test_write_by_an_old_revision_is_overtaken_and_changes_nothing(
    stores: Stores, whole: AuthorityState
) -> None:
    """The error has the state of the other server, so that it can be taken over at once."""
    fill(store := stores.open(), whole)
    old = store.read()
    other = changed(stores.open(), lambda state: replace(state, first_proxy="0a"))
    with pytest.raises(Overtaken) as overtaken:
        store.replace(old.revision, replace(old.state, first_proxy="0b"))
    assert overtaken.value.there == other == store.read()


def test_no_write_of_eight_threads_is_lost(stores: Stores) -> None:
    """Each thread changes the same field several times, and reads again after it was overtaken."""
    store = stores.open()

    def known(state: AuthorityState) -> Mapping[SecretName, Fingerprint]:
        assert not isinstance(state.declared_roots, Unreadable)
        return state.declared_roots

    def add(name: SecretName, state: AuthorityState) -> AuthorityState:
        return replace(state, declared_roots={**known(state), name: Fingerprint("a")})

    def write(number: int) -> None:
        for count in range(5):
            changed(store, partial(add, SecretName(Namespace("mesh"), f"{number}-{count}")))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(known(store.read().state)) == 40


@pytest.mark.parametrize("rotating", [False, True])
def test_no_write_can_lose_a_ca(
    stores: Stores, whole: AuthorityState, now: datetime, *, rotating: bool
) -> None:
    """A CA in use is replaced or removed only by a root rotation, whatever a caller asks for."""
    begun_state = whole if rotating else replace(whole, other=None, rotation=None)
    fill(store := stores.open(), whole)
    if not rotating:
        changed(store, partial(AuthorityState.stepped, rotation=None))
    stranger = StoredCa.of(new_root(DOMAIN, now))
    lossy = [
        replace(begun_state, ca=None),
        replace(begun_state, ca=stranger),
        replace(begun_state, other=stranger),
        replace(begun_state, ca=whole.other, other=whole.ca),
        replace(begun_state, ca=whole.other, other=None, rotation=None),
        replace(begun_state, ca=stranger, other=whole.ca, rotation=whole.rotation),
        replace(begun_state, other=None, rotation=whole.rotation),
    ]
    stored = store.read()
    assert stored.state == begun_state
    for state in lossy:
        with pytest.raises(ValueError, match="changes only by the steps of a root rotation"):
            store.replace(stored.revision, state)
    assert store.read() == stored


def test_damaged_rotation_is_replaced_only_beside_the_same_cas(whole: AuthorityState, now: datetime) -> None:
    """A server that knows the rotation takes its next step: it exchanges the CAs or removes the other one."""
    damaged, stranger = replace(whole, rotation=Unreadable("damaged")), StoredCa.of(new_root(DOMAIN, now))
    steps = [whole, replace(whole, ca=whole.other, other=whole.ca), replace(whole, other=None, rotation=None)]
    lossy = [
        replace(whole, ca=stranger),
        replace(whole, other=stranger),
        replace(whole, other=None),
        replace(whole, ca=whole.other, other=None, rotation=None),
    ]
    assert [is_step(damaged, state) for state in (*steps, *lossy)] == [True] * 3 + [False] * 4


@pytest.mark.parametrize("stores", ["files", "memory"], indirect=True)
@pytest.mark.fuzzed
@pytest.mark.parametrize("number", MOMENTS)
def test_crash_in_any_write_leaves_the_state_before_or_after_it(
    stores: Stores, whole: AuthorityState, now: datetime, number: int
) -> None:
    """This holds for every kind of write. After a restart the write can be repeated."""
    fill(stores.open(), whole)
    rotation = whole.rotation
    assert isinstance(rotation, Rotation)
    second = advanced(rotation, now)
    assert second is not None
    third = advanced(second, now)
    steps: list[Callable[[AuthorityState], AuthorityState]] = [
        lambda state: replace(state, first_proxy="0a"),
        lambda state: replace(state, declared_roots={}),
        lambda state: replace(state, service_issuers=whole.channel_issuers),
        lambda state: state.stepped(second),
        lambda state: state.stepped(third),
        lambda state: state.stepped(None),
    ]
    survived = []
    for step in steps:
        before = stores.open().read().state
        with stores.dying(number):
            survived.append(changed(stores.open(), step))
        after = stores.open().recover().state
        assert _complete(after) in (_complete(before), _complete(step(before)))
        assert _complete(changed(stores.open(), step).state) == _complete(step(before))
    if number in (0, CRASHES - 1):
        assert len(survived) == (0 if number == 0 else len(steps)), "every point of each step is tried"


def _complete(state: AuthorityState) -> AuthorityState:
    """Return a state without the key of a CA that is about to be removed: its key is deleted first."""
    if isinstance(state.rotation, Rotation) and state.rotation.stage.number == 3 and state.other is not None:
        return replace(state, other=replace(state.other, key=None))
    return state


@pytest.mark.parametrize("stores", ["files", "memory"], indirect=True)
@pytest.mark.fuzzed
@pytest.mark.parametrize("number", MOMENTS)
def test_crash_in_the_first_start_leaves_no_ca_or_a_whole_one(
    stores: Stores, number: int, now: datetime
) -> None:
    """The next start creates the CA, or uses it."""
    with stores.dying(number):
        ChangingAuthority(stores.open(), DOMAIN, now)
    ca = stores.open().recover().state.ca
    again = ChangingAuthority(stores.open(), DOMAIN, now)
    assert ca in (None, stores.open().read().state.ca)
    assert again.rotation is None


@pytest.mark.parametrize("name", FIELDS)
def test_damaged_field_is_named_and_the_others_hold(stores: Stores, whole: AuthorityState, name: str) -> None:
    """The damaged content stays for a repair, although other fields are written."""
    fill(store := stores.open(), whole)
    place = stores.damage(name)
    state = store.read().state
    damaged = getattr(state, name)
    assert isinstance(damaged, Unreadable)
    assert place in damaged.reason
    assert "is damaged" in damaged.reason
    assert state == replace(whole, **{name: damaged})  # type: ignore[arg-type]
    after = changed(store, lambda state: replace(state, first_proxy="0a")).state
    assert after == stores.open().read().state == replace(state, first_proxy="0a")


def test_no_key_is_in_a_repr_or_an_error(stores: Stores, whole: AuthorityState) -> None:
    """Values and errors may end up in logs."""
    fill(store := stores.open(), whole)
    stored = store.read()
    changed(store, partial(replace, first_proxy="0a"))
    with pytest.raises(Overtaken) as overtaken:
        store.replace(stored.revision, stored.state)
    texts = (
        repr(stored),
        repr(overtaken.value),
        str(overtaken.value),
        repr(overtaken.value.there),
        repr(store),
    )
    for ca in (stored.state.ca, stored.state.other):
        assert ca is not None
        assert isinstance(ca.key, PrivateKey)
        lines = ca.key.reveal().decode("ascii").splitlines()
        assert [line for line in lines for text in texts if line in text] == []


def test_two_servers_that_start_together_have_one_ca(stores: Stores, now: datetime) -> None:
    """The second server takes the CA of the first one, although it has seen none."""
    first, second = stores.open(), stores.open()
    empty = second.read()
    made = ChangingAuthority(first, DOMAIN, now)
    with pytest.raises(Overtaken) as overtaken:
        second.replace(empty.revision, replace(empty.state, ca=StoredCa.of(new_root(DOMAIN, now))))
    assert overtaken.value.there.state.ca == first.read().state.ca
    assert ChangingAuthority(second, DOMAIN, now).fingerprint == made.fingerprint


def test_step_of_another_server_is_taken_over(stores: Stores, now: datetime) -> None:
    """Two servers never take two steps for one: the late one gets an error, and has the new state."""
    one, two = ChangingAuthority(stores.open(), DOMAIN, now), ChangingAuthority(stores.open(), DOMAIN, now)
    rotation = one.begin(now)
    with pytest.raises(Overtaken, match="was changed by another server first"):
        two.begin(now)
    assert (two.rotation, two.trust_bundle()) == (rotation, one.trust_bundle())
    two.step(second := advanced(rotation, now), now)
    with pytest.raises(StateError, match="was changed by another server first"):
        one.step(advanced(rotation, now + timedelta(hours=1)), now)
    assert (one.rotation, one.fingerprint) == (second, two.fingerprint)


def test_step_of_another_server_is_followed(stores: Stores, now: datetime) -> None:
    """A server that takes no step itself looks, and then signs with the CA of the step."""
    one, two = ChangingAuthority(stores.open(), DOMAIN, now), ChangingAuthority(stores.open(), DOMAIN, now)
    assert (two.look(now), two.rotation) == (False, None)
    rotation: Rotation | None = one.begin(now)
    while rotation is not None:
        assert (two.look(now), two.look(now)) == (True, False)
        assert (two.rotation, two.fingerprint, two.trust_bundle(), two.signing_bundle()) == (
            rotation,
            one.fingerprint,
            one.trust_bundle(),
            one.signing_bundle(),
        )
        one.step(rotation := advanced(rotation, now), now)
    assert (two.look(now), two.rotation, two.trust_bundle()) == (True, None, one.trust_bundle())


def test_other_changes_of_the_state_do_not_stop_a_step(
    stores: Stores, whole: AuthorityState, now: datetime
) -> None:
    """The note of another server is kept, and the step is taken."""
    authority = ChangingAuthority(stores.open(), DOMAIN, now)
    changed(stores.open(), lambda state: replace(state, declared_roots=whole.declared_roots))
    rotation = authority.begin(now)
    state = stores.open().read().state
    assert (state.rotation, state.declared_roots) == (rotation, whole.declared_roots)


@pytest.mark.parametrize("role", Role)
def test_first_record_of_issuers_wins(stores: Stores, whole: AuthorityState, role: Role) -> None:
    """A server that has not seen it gets the other server's record, and then can replace that one."""
    record, late = RoleSuccession(stores.open(), role), RoleSuccession(stores.open(), role)
    first, second = whole.service_issuers, whole.channel_issuers
    assert isinstance(first, Succession)
    assert isinstance(second, Succession)
    assert record.read() is None
    assert record.replace(None, first) == first
    assert late.replace(None, second) == first == record.read()
    assert late.replace(first, second) == second == record.read()


def test_damaged_record_of_issuers_is_not_read(stores: Stores, whole: AuthorityState) -> None:
    """A start without the roots of former issuers would cut connections."""
    fill(stores.open(), whole)
    place = stores.damage("service_issuers")
    with pytest.raises(StateError) as error:
        RoleSuccession(stores.open(), Role.SERVICES).read()
    assert place in str(error.value)
