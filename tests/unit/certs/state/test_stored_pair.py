"""Tests of the contract of pair stores: first pair, latest pair, complete pair, renewal.

Another implementation can be added to those that are run here.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from certs.contract import CertificateRequest, Names, Usage
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import Pair, issue_pair
from certs.manager import CertificateManager
from certs.state.pair_files import PairFiles
from certs.state.sealing import Seal, new_data_key
from certs.state.stored_pair import (
    ADS_SERVER,
    IssuedPair,
    Pairs,
    StoredPair,
    holder_of,
    issued_pair,
    kept,
    kept_pair,
)
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain
from tests.tools.own_authority import own_authority
from tests.tools.shared_records import LoopThread
from tests.unit.certs.pair_records.servers import PairServers
from tests.unit.certs.state.memory import MemoryPairs

IDENTITY: Final = ServiceIdentity(Namespace("default"), ServiceAccountName("shop"))
SHOP: Final = holder_of(IDENTITY)
CART: Final = holder_of(ServiceIdentity(Namespace("default"), ServiceAccountName("cart")))
NAMES: Final = Names("ads", dns_names=("localhost",))
DAY: Final = timedelta(days=1)

Open = Callable[[], Pairs]


@pytest.fixture(params=["files", "sealed files", "memory", "records"])
def servers(request: pytest.FixtureRequest, state: Path) -> Iterator[Open]:
    """Provide a function to open the store as another server does, of each kind in turn."""
    match request.param:
        case "memory":
            pairs = MemoryPairs()
            yield lambda: pairs
        case "records":
            with LoopThread() as thread:
                yield PairServers(thread).open
        case kind:
            seal = Seal(new_data_key() if kind == "sealed files" else None)
            yield lambda: PairFiles(state, seal)


@pytest.fixture
def pairs(servers: Open) -> Pairs:
    """Return a store of pairs."""
    return servers()


def _pair(authority: CertificateAuthority, now: datetime, days: int = 1) -> Pair:
    return issue_pair(authority, Usage.SERVER, NAMES, days * DAY, now)


def test_each_holder_has_its_last_stored_pair(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """A holder has no pair at first, and never another holder's."""
    first, second, other = (_pair(authority, now) for _ in range(3))
    assert (pairs.load(SHOP), pairs.load(CART)) == (None, None)
    assert pairs.keep(SHOP, first, None) == first
    assert pairs.keep(CART, other, None) == other
    assert pairs.keep(SHOP, second, first.leaf.serial) == second
    assert (pairs.load(SHOP), pairs.load(CART)) == (second, other)
    assert len({pairs.place(SHOP), pairs.place(CART)}) == 2


def test_first_writer_wins_and_the_others_get_its_pair(
    servers: Open, authority: CertificateAuthority, now: datetime
) -> None:
    """A writer that has not seen the stored pair changes nothing, whether it saw none or an older one."""
    first, second, late = (_pair(authority, now) for _ in range(3))
    one, two = servers(), servers()
    assert one.keep(SHOP, first, None) == first
    assert two.keep(SHOP, late, None) == first == two.load(SHOP)
    assert two.keep(SHOP, second, first.leaf.serial) == second
    assert one.keep(SHOP, late, first.leaf.serial) == second == one.load(SHOP)


@pytest.fixture
def _turns() -> Iterator[None]:
    """Let threads take turns as often as possible, so that a race is seen."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_turns")
def test_of_many_writers_at_once_one_wins(
    servers: Open, authority: CertificateAuthority, now: datetime
) -> None:
    """All writers have the same pair afterwards, and so do those that read it."""
    rivals, results = [_pair(authority, now) for _ in range(8)], list[Pair]()
    together = threading.Barrier(len(rivals))

    def write(pair: Pair) -> None:
        together.wait()
        results.append(servers().keep(SHOP, pair, None))

    threads = [threading.Thread(target=write, args=(pair,)) for pair in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = servers().load(SHOP)
    assert winner in rivals
    assert results == [winner] * 8


def test_load_during_a_replacement_returns_a_complete_pair(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """Another thread replaces the pair repeatedly."""
    either = _pair(authority, now), _pair(authority, now)
    pairs.keep(SHOP, either[0], None)

    def replace() -> None:
        for number in range(1, 41):
            pairs.keep(SHOP, either[number % 2], either[(number + 1) % 2].leaf.serial)

    thread = threading.Thread(target=replace)
    thread.start()
    seen = [pairs.load(SHOP)]
    while thread.is_alive():
        seen.append(pairs.load(SHOP))
    thread.join()
    assert [pair for pair in seen if pair not in either] == []
    assert pairs.load(SHOP) == either[0]


def test_stored_pair_is_used_while_it_is_valid(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """After its end, a new pair is issued and stored in its place."""

    def asked(at: datetime) -> tuple[Pair, str | None]:
        return kept_pair(pairs, SHOP, authority, Usage.SERVER, NAMES, lambda: DAY, at)

    first, issued = asked(now)
    assert (issued, asked(now)) == ("", (first, None))
    second, issued = asked(now + DAY)
    assert (issued, second != first, pairs.load(SHOP)) == ("", True, second)


def test_ends_of_stored_certificates_are_known(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """Roots of a former issuer are trusted until then."""
    assert (pairs.services_end(), pairs.last_end()) == (None, None)
    short, long = _pair(authority, now), _pair(authority, now, days=9)
    pairs.keep(SHOP, short, None)
    pairs.keep(CART, long, None)
    assert (pairs.services_end(), pairs.last_end()) == (long.leaf.not_after, long.leaf.not_after)


@pytest.mark.parametrize("servers", ["files", "sealed files", "memory"], indirect=True)
def test_end_of_a_server_counts_only_for_the_channel(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """Sidecars never verify a server's certificate with the roots of services."""
    short, long = _pair(authority, now), _pair(authority, now, days=9)
    pairs.keep(SHOP, short, None)
    pairs.keep(ADS_SERVER, long, None)
    assert (pairs.services_end(), pairs.last_end()) == (short.leaf.not_after, long.leaf.not_after)


class _Meanwhile:
    """An issuer during whose answer another server stores a pair."""

    def __init__(self, inner: CertificateAuthority, store: Callable[[], object]) -> None:
        self._inner, self._store = inner, store

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain."""
        return self._inner.trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign, after the other server has been faster."""
        self._store()
        return self._inner.issue(request, now)

    def trust_bundle(self) -> bytes:
        """Return the trusted roots."""
        return self._inner.trust_bundle()

    def signing_bundle(self) -> bytes:
        """Return the signing roots."""
        return self._inner.signing_bundle()


def test_usable_pair_of_a_faster_server_is_taken(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """All servers of a mesh then show one certificate for a service. The own key is forgotten."""
    theirs = _pair(authority, now)
    issuer = _Meanwhile(authority, lambda: pairs.keep(SHOP, theirs, None))
    issued = issued_pair(pairs, SHOP, issuer, Usage.SERVER, NAMES, DAY, now, before=None)
    assert issued == IssuedPair(theirs, is_new=False)
    assert pairs.load(SHOP) == theirs


@pytest.mark.parametrize("fault", ["names", "root", "due", "expired"])
def test_unusable_pair_of_a_faster_server_is_replaced(
    pairs: Pairs, authority: CertificateAuthority, now: datetime, tmp_path: Path, fault: str
) -> None:
    """A server with an older configuration must not decide about the certificate of the others."""
    other = own_authority(tmp_path / "other", authority.trust_domain, now)
    names = Names("ads", dns_names=("elsewhere",)) if fault == "names" else NAMES
    begun = {"due": now - timedelta(hours=20), "expired": now - 2 * DAY}.get(fault, now)
    theirs = issue_pair(other if fault == "root" else authority, Usage.SERVER, names, DAY, begun)
    issuer = _Meanwhile(authority, lambda: pairs.keep(SHOP, theirs, None))
    issued = issued_pair(pairs, SHOP, issuer, Usage.SERVER, NAMES, DAY, now, before=None)
    assert (issued.is_new, issued.unkept, issued.pair) == (True, "", pairs.load(SHOP))
    assert issued.pair != theirs


def test_unusable_stored_pair_is_known_by_its_serial(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """The new pair replaces this one at once, and no pair that came after it."""
    first = _pair(authority, now)
    pairs.keep(SHOP, first, None)
    others = Names("ads", dns_names=("elsewhere",))
    found = kept(pairs, SHOP, authority, Usage.SERVER, others, now)
    assert found == StoredPair(None, seen=first.leaf.serial)


def test_two_servers_have_one_certificate_for_a_service(
    servers: Open, authority: CertificateAuthority, now: datetime
) -> None:
    """Only one of them has issued it. If one server renews it, the other one takes the new certificate."""
    one, two = (CertificateManager(authority, servers(), DAY, lambda: 0.0) for _ in range(2))
    requests = [manager.request(IDENTITY, ("shop.default",)) for manager in (one, two)]
    first, second = (
        manager.take(IDENTITY, request(now)) for manager, request in zip((one, two), requests, strict=True)
    )
    assert (first, one.issued, two.issued) == (second, 1, 0)
    later = now + timedelta(hours=20)
    renewed = [manager.ensure(IDENTITY, ("shop.default",), later) for manager in (two, one)]
    assert renewed[0] == renewed[1] != first
    assert (one.issued, two.issued) == (1, 1)


def test_pair_is_stored_without_waiting_for_the_disk(
    state: Path, authority: CertificateAuthority, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost pair can be issued again, and hundreds are stored while their sidecars wait."""
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    PairFiles(state).keep(SHOP, _pair(authority, now), None)
    assert waits == []


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_corrupt_file_is_replaced_by_the_next_pair(
    state: Path, authority: CertificateAuthority, now: datetime, content: bytes | None
) -> None:
    """A corrupt pair, or one that is missing, is nobody's: it does not win against a new one."""
    pairs, pair = PairFiles(state), _pair(authority, now)
    pairs.keep(SHOP, _pair(authority, now), None)
    path = Path(pairs.place(SHOP))
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert pairs.keep(SHOP, pair, "0a") == pair == pairs.load(SHOP)


def test_certificate_with_another_key_is_replaced_by_the_next_pair(
    state: Path, authority: CertificateAuthority, now: datetime
) -> None:
    """Its certificate can be read, but nobody can use it."""
    pairs, pair = PairFiles(state), _pair(authority, now)
    broken = Path(pairs.place(SHOP))
    broken.parent.mkdir(parents=True)
    broken.write_bytes(_pair(authority, now).key.reveal() + pair.chain_pem)
    assert pairs.keep(SHOP, pair, None) == pair == pairs.load(SHOP)
