"""Tests of the contract of pair stores: latest pair, complete pair, renewal."""

import os
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.contract import Names, Usage
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import Pair, issue_pair
from certs.state.pair_files import PairFiles
from certs.state.stored_pair import ADS_SERVER, Holder, Pairs, holder_of, kept_pair
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName

SHOP = holder_of(ServiceIdentity(Namespace("default"), ServiceAccountName("shop")))
NAMES = Names("ads", dns_names=("localhost",))
DAY = timedelta(days=1)


@dataclass
class MemoryPairs:
    """Store of pairs without a disk."""

    held: dict[Holder, Pair] = field(default_factory=dict)

    def load(self, holder: Holder) -> Pair | None:
        """Return a holder's pair."""
        return self.held.get(holder)

    def keep(self, holder: Holder, pair: Pair) -> None:
        """Store a pair."""
        self.held[holder] = pair

    def place(self, holder: Holder) -> str:
        """Return a name for the place of a pair."""
        return f"memory {holder}"


@pytest.fixture(params=["files", "memory"])
def pairs(request: pytest.FixtureRequest, state: Path) -> Pairs:
    """Return a store of pairs, of each kind in turn."""
    return PairFiles(state) if request.param == "files" else MemoryPairs()


def _pair(authority: CertificateAuthority, now: datetime) -> Pair:
    return issue_pair(authority, Usage.SERVER, NAMES, DAY, now)


def test_each_holder_has_its_last_stored_pair(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """A holder has no pair at first, and never another holder's."""
    first, second, other = (_pair(authority, now) for _ in range(3))
    assert (pairs.load(SHOP), pairs.load(ADS_SERVER)) == (None, None)
    pairs.keep(SHOP, first)
    pairs.keep(ADS_SERVER, other)
    pairs.keep(SHOP, second)
    assert (pairs.load(SHOP), pairs.load(ADS_SERVER)) == (second, other)
    assert len({pairs.place(SHOP), pairs.place(ADS_SERVER)}) == 2


def test_load_during_a_replacement_returns_a_complete_pair(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """Another thread replaces the pair repeatedly."""
    either = _pair(authority, now), _pair(authority, now)
    pairs.keep(SHOP, either[0])

    def replace() -> None:
        for number in range(40):
            pairs.keep(SHOP, either[number % 2])

    thread = threading.Thread(target=replace)
    thread.start()
    seen = [pairs.load(SHOP)]
    while thread.is_alive():
        seen.append(pairs.load(SHOP))
    thread.join()
    assert [pair for pair in seen if pair not in either] == []


def test_stored_pair_is_used_while_it_is_valid(
    pairs: Pairs, authority: CertificateAuthority, now: datetime
) -> None:
    """After its end, a new pair is issued and stored in its place."""

    def asked(at: datetime) -> tuple[Pair, str | None]:
        return kept_pair(pairs, ADS_SERVER, authority, Usage.SERVER, NAMES, lambda: DAY, at)

    first, issued = asked(now)
    assert (issued, asked(now)) == ("", (first, None))
    second, issued = asked(now + DAY)
    assert (issued, second != first, pairs.load(ADS_SERVER)) == ("", True, second)


def test_pair_is_stored_without_waiting_for_the_disk(
    state: Path, authority: CertificateAuthority, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost pair can be issued again, and hundreds are stored while their sidecars wait."""
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    PairFiles(state).keep(SHOP, _pair(authority, now))
    assert waits == []
