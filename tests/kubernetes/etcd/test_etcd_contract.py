"""The contract of records with a real etcd, and what the contract leaves to each store."""

from collections.abc import AsyncIterator

import pytest

from tests.kubernetes.etcd.conftest import EtcdStores
from tests.kubernetes.etcd.members import RealMember
from tests.unit.records.test_contract import RecordContract


@pytest.fixture
async def stores(member: RealMember) -> AsyncIterator[EtcdStores]:
    """Return a mesh without records in the shared etcd."""
    async with EtcdStores(member.endpoint) as made:
        yield made


class TestEtcd(RecordContract):
    """The contract of the store in etcd."""
