"""The contract of records on a real API server, with the fixture `stores` of this folder."""

from tests.unit.records.test_contract import RecordContract, ReplicaContract


class TestKubernetes(RecordContract, ReplicaContract):
    """The contract of records as objects of a cluster."""
