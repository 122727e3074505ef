"""States of meshes for tests, and the places that have them: state directories, and stores in memory."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from catalog.policy.units import UnitId
from certs.contract import Names, Usage
from certs.custody import AuthorityWithLedger, opened
from certs.issuers.authority import CertificateAuthority
from certs.issuers.root import Root, new_root
from certs.issuers.stored_ca import StoredCa
from certs.issuers.succession import FormerIssuer, Succession
from certs.keys.bundle import TrustBundle
from certs.keys.pair import Pair, issue_pair
from certs.ledger.entry import LedgerEntry
from certs.roots.authority_state import AuthorityState
from certs.roots.rotation import Fingerprint, Rotation, Stage, begun
from certs.state import sealing
from certs.state.sealing import ScryptParameters
from certs.state.stored_pair import Holder
from meshwright.controller.gateway.certificate import GATEWAY_SECRETS
from meshwright.controller.state_files import VERDICTS, StateFile
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.enrolment.store.token_fields import StoredToken, TokenWithUses
from meshwright.enrolment.tokens import TokenRecord
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ProxyUuid, SecretName, ServiceName, TrustDomain
from meshwright.records.contract import RecordStore, ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.transfer.directory_state import read_directory, write_directory
from meshwright.transfer.mesh_state import MeshState, first_of
from meshwright.transfer.mesh_store import MeshStore
from meshwright.transfer.rejections import transferable
from tests.tools.shared_records import LoopThread
from xds.cache import NodeKey
from xds.protocol.resources.resource import ROUTE, ResourceName

DOMAIN: Final = TrustDomain("mesh.example")
NOW: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)


@cache
def root(number: int) -> Root:
    """Return one of several CAs."""
    return new_root(DOMAIN, NOW - number * HOUR)


def verdict(proxy: str, unit: str, message: str = "no such cluster", times: int = 2) -> Verdict:
    """Return the verdict on a TrafficSplit that a proxy rejects."""
    place = (ROUTE, ResourceName("rds-outbound.shop/cart|80"))
    return Verdict(NodeKey(proxy), UnitId(unit), *place, "TrafficSplit shop/cart", message, times, NOW)


@cache
def pair(account: str, serial: int = 0) -> Pair:
    """Return a service certificate of the first CA; a greater number is a later one."""
    names = Names(account, uris=(f"spiffe://{DOMAIN}/ns/shop/sa/{account}",))
    authority = CertificateAuthority(root(0), DOMAIN)
    return issue_pair(authority, Usage.SERVICE, names, 24 * HOUR, NOW + serial * HOUR)


def holder(account: str) -> Holder:
    """Return the holder of a service certificate in the namespace `shop`."""
    return Holder(f"services/shop/{account}")


def entry(serial: str, uuid: str = "a1", **facts: Any) -> LedgerEntry:
    """Return a certificate in the ledger, signed by the first CA."""
    name = ProxyName.parse(f"{uuid}.cart.shop")
    issued = LedgerEntry.issued(serial, name, NOW, NOW + 24 * HOUR, signer=root(0).fingerprint)
    return replace(issued, **facts)


def token(number: int, uses: Mapping[str, datetime], **facts: Any) -> TokenWithUses:
    """Return a join token with five uses."""
    service, namespace = ServiceName("cart"), Namespace("shop")
    record = TokenRecord(
        f"{number:012x}", service, namespace, None, 5, 0, NOW, NOW + 24 * HOUR, made_by="alice"
    )
    return TokenWithUses(StoredToken(replace(record, **facts), f"{number:064x}"), uses)


def mesh(**facts: Any) -> MeshState:
    """Return a mesh with the first CA, and a ledger that fits to the CA."""
    before = MeshState(AuthorityState(StoredCa.of(root(0))), root(0).fingerprint)
    result = replace(before, **facts)
    first = first_of(result.entries)
    serial = None if first is None else first[1]
    return replace(result, first=first, authority=replace(result.authority, first_proxy=serial))


def small_mesh() -> MeshState:
    """Return a mesh with one thing of each kind."""
    return mesh(
        entries=(
            entry("a1", claimed_at=NOW, claimed_from="10.0.0.7", admitted_at=NOW + HOUR),
            entry("b2", "b1", revoked_at=NOW, revoked_why="stolen"),
        ),
        pairs={holder("cart"): pair("cart")},
        tokens=(token(1, {"5f" * 32: NOW, "77" * 32: NOW + HOUR}),),
        gateway_secrets=frozenset({SecretName(Namespace("mesh"), "gateway")}),
        rejections=(verdict("a1.cart.shop", "0b1f"),),
    )


def rotating_mesh() -> MeshState:
    """Return the small mesh in the first stage of a root rotation."""
    own, other = root(0), root(1)
    rotation = begun(Fingerprint(own.fingerprint), Fingerprint(other.fingerprint), NOW)
    value = small_mesh()
    return replace(value, authority=replace(value.authority, other=StoredCa.of(other), rotation=rotation))


_MOMENTS: Final = st.integers(0, 10**6).map(lambda seconds: NOW + timedelta(seconds=seconds))
_LATER: Final = st.none() | _MOMENTS
_WORDS: Final = st.text("abc é\"'{}\\/|\u2028", max_size=8).map(str.strip)
_LABELS: Final = st.text("ab1", min_size=1, max_size=3)
_DIGESTS: Final = st.integers(0, 2**256 - 1).map(lambda number: f"{number:064x}")


@st.composite
def _entries(draw: st.DrawFn) -> tuple[LedgerEntry, ...]:
    serials = draw(st.lists(st.integers(1, 2**64).map("{:x}".format), unique=True, max_size=6))
    entries = [
        replace(
            entry(serial, draw(_LABELS)),
            issued_at=draw(_MOMENTS),
            not_after=draw(_MOMENTS),
            claimed_at=draw(_LATER),
            revoked_at=draw(_LATER),
            admitted_at=draw(_LATER),
            claimed_from=draw(_WORDS),
            seen_at=draw(_LATER),
            claim_by=draw(_LATER),
            revoked_why=draw(_WORDS),
            signer=root(draw(st.integers(0, 1))).fingerprint,
            term=draw(st.none() | st.integers(1, 10**6).map(lambda seconds: timedelta(seconds=seconds))),
            joined_by=draw(_WORDS),
        )
        for serial in serials
    ]
    return tuple(sorted(entries, key=lambda each: (each.common_name, each.issued_at, each.serial)))


def _rejections(proxies: list[str]) -> st.SearchStrategy[list[Verdict]]:
    if not proxies:
        return st.just([])
    names, times = st.sampled_from(proxies), st.integers(1, 9)
    found = st.builds(verdict, names, _LABELS, _WORDS, times)
    return st.lists(found, unique_by=lambda each: (each.proxy, each.unit), max_size=4)


@st.composite
def _tokens(draw: st.DrawFn) -> tuple[TokenWithUses, ...]:
    numbers = sorted(draw(st.sets(st.integers(0, 2**48 - 1), max_size=3)))
    return tuple(
        token(
            number,
            draw(st.dictionaries(_DIGESTS, _MOMENTS, max_size=5)),
            uuid=draw(st.none() | _LABELS.map(ProxyUuid)),
            days=draw(st.none() | st.integers(1, 100)),
            revoked_at=draw(_LATER),
            made_by=draw(_WORDS),
        )
        for number in numbers
    )


@st.composite
def _authorities(draw: st.DrawFn) -> AuthorityState:
    own, other = root(0), root(1)
    rotation, given_up = None, draw(st.dictionaries(_LABELS, _MOMENTS, max_size=2))
    if draw(st.booleans()):
        signer, beside = Fingerprint(own.fingerprint), Fingerprint(other.fingerprint)
        stage, began, since = draw(st.sampled_from(Stage)), draw(_MOMENTS), draw(_MOMENTS)
        rotation = Rotation(stage, signer, beside, began, since, draw(st.booleans()), given_up)
    issuers = None
    if draw(st.booleans()):
        bundle = TrustBundle.from_pems([StoredCa.of(other).trusted])
        formers = (FormerIssuer(bundle, draw(_MOMENTS)),)
        issuers = Succession("vault https://vault", bundle, draw(_MOMENTS), formers, draw(st.booleans()))
    roots = draw(st.dictionaries(_LABELS, st.just(Fingerprint(own.fingerprint)), max_size=2))
    declared = {SecretName(Namespace("mesh"), name): fingerprint for name, fingerprint in roots.items()}
    beside_ca = None if rotation is None else StoredCa.of(other)
    return AuthorityState(StoredCa.of(own), beside_ca, rotation, issuers, declared_roots=declared)


@st.composite
def meshes(draw: st.DrawFn) -> MeshState:
    """Return any mesh that a state directory may have."""
    accounts = draw(st.sets(st.sampled_from(("cart", "shop", "pay"))))
    entries = draw(_entries())
    secrets = draw(st.frozensets(_LABELS, max_size=2))
    return mesh(
        authority=draw(_authorities()),
        entries=entries,
        pairs={holder(account): pair(account) for account in accounts},
        tokens=draw(_tokens()),
        gateway_secrets=frozenset(SecretName(Namespace("mesh"), name) for name in secrets),
        rejections=transferable(draw(_rejections([entry.common_name for entry in entries])), entries),
    )


def cheap_passphrases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let new keys that are encrypted with a passphrase have a cheap derivation, which they name."""
    monkeypatch.setattr(sealing, "ScryptParameters", lambda *how: ScryptParameters(*(how or (2, 1, 1))))


def write(state: Path, value: MeshState) -> None:
    """Import a mesh into a state directory."""
    state.mkdir(mode=0o700, exist_ok=True)
    write_directory(state, value, None, StateFile(state, GATEWAY_SECRETS), StateFile(state, VERDICTS))


@contextmanager
def started(state: Path) -> Iterator[AuthorityWithLedger]:
    """Open a state directory as a server does."""
    with opened(state, DOMAIN, NOW) as authority:
        yield authority


def read(state: Path) -> MeshState:
    """Return the mesh in a state directory, as an export does."""
    with started(state) as authority:
        return read_directory(state, authority, StateFile(state, GATEWAY_SECRETS), StateFile(state, VERDICTS))


@dataclass
class Store:
    """A store in memory, and the thread of its clients."""

    thread: LoopThread
    state: Path = Path("/missing")
    memory: Memory = field(default_factory=Memory)

    def client(
        self, wrap: Callable[[RecordStore], RecordStore] = lambda store: store, pauses: tuple[float, ...] = ()
    ) -> MeshStore:
        """Return another client."""
        replica = ReplicaId("mover")
        records = wrap(MemoryRecords(self.memory, replica))
        return MeshStore(records, replica, self.thread, self.state, None, pauses)

    def write(self, value: MeshState) -> None:
        """Write a mesh with a client without faults."""
        self.client().write(value, NOW)

    def read(self) -> MeshState:
        """Return the mesh in the store."""
        return self.client().read()

    def contents(self) -> dict[str, bytes]:
        """Return the contents of all records."""
        return {key: record.content for key, record in self.memory.records.items()}
