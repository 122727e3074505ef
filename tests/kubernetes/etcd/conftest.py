"""Fixtures of the tests of etcd: one member for all tests of a process. No cluster is started."""

import itertools
from collections.abc import Iterator
from typing import Final

import pytest

from meshwright.etcd.client import Client
from meshwright.etcd.lease import Terms
from meshwright.records.contract import RecordStore, ReplicaId
from meshwright.records.etcd.layout import Layout
from meshwright.records.etcd.store import EtcdRecords
from tests.kubernetes.conftest import skip_without
from tests.kubernetes.etcd.members import RealMember, access_to, etcd
from tools.real_parts.parts import ETCD

TERMS: Final = Terms(lasts=5, every=0.05, patience=3.0)
"""Times of the suite: renewals are often, so that the suite is quick."""

_numbers = itertools.count(1)


class EtcdStores:
    """One mesh in an etcd, and the stores of its replicas; each has a client of its own."""

    def __init__(self, *members: RealMember) -> None:
        self.members = members
        self.layout = Layout(f"mesh-{next(_numbers)}")
        self._clients: list[Client] = []

    def etcd_client(self) -> Client:
        """Return a client that is closed at the end of the test."""
        client = Client(access_to(*self.members))
        self._clients.append(client)
        return client

    def client(self, replica: str) -> RecordStore:
        """Return the store of a replica."""
        return EtcdRecords(self.etcd_client(), self.layout, ReplicaId(replica), TERMS)

    async def close(self) -> None:
        """Close all clients."""
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
