"""Fixtures of the tests of etcd: one member for all tests of a process. No cluster is started."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import pytest

from meshwright.etcd.access import Access, Endpoint
from meshwright.etcd.client import LIMITS, Client, Limits
from meshwright.etcd.lease import Terms
from meshwright.records.contract import ReplicaId
from meshwright.records.etcd.layout import Layout
from meshwright.records.etcd.store import EtcdRecords
from tests.feature.issuers.conftest import bao, pki
from tests.kubernetes.conftest import skip_without
from tests.kubernetes.etcd.members import RealMember, etcd
from tools.real_parts.parts import ETCD

__all__ = ("bao", "pki")

TERMS: Final = Terms(lasts=5, every=0.05, patience=3.0)
"""Times of the suite: renewals are often, so that the suite is quick."""

_numbers = itertools.count(1)


class EtcdStores:
    """One mesh in an etcd, and the stores of its replicas; each has a client of its own."""

    def __init__(self, *endpoints: Endpoint, limits: Limits = LIMITS, terms: Terms = TERMS) -> None:
        self.endpoints = endpoints
        self.layout = Layout(f"mesh-{next(_numbers)}")
        self._limits, self._terms = limits, terms
        self._clients: list[Client] = []

    def client(self, replica: str, *endpoints: Endpoint) -> EtcdRecords:
        """Return the store of a replica, by default at the endpoints of the mesh."""
        client = Client(Access(endpoints or self.endpoints), self._limits)
        self._clients.append(client)
        return EtcdRecords(client, self.layout, ReplicaId(replica), self._terms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients:
            await client.close()


@pytest.fixture(scope="session")
def etcd_part() -> None:
    """Require etcd, which needs no cluster."""
    skip_without(ETCD)


@pytest.fixture(scope="session")
def member(etcd_part: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealMember]:
    """Return the member of all tests that do it no harm."""
    with etcd(tmp_path_factory.mktemp("etcd") / "shared") as [started]:
        yield started


@pytest.fixture
def own_member(etcd_part: None, tmp_path: Path) -> Iterator[RealMember]:
    """Return a member that the test may kill."""
    with etcd(tmp_path / "own") as [started]:
        yield started
