"""Tests of the record of declared roots: what it costs to look for a change every two seconds."""

from dataclasses import replace
from datetime import datetime

import pytest

from certs.issuers.root import new_root
from certs.issuers.stored_ca import StoredCa
from certs.roots.authority_state import AuthorityState
from certs.roots.authority_store import StoredAuthority
from certs.roots.declared_roots import DeclaredRoot
from certs.roots.rotation import Fingerprint
from certs.roots.secrets import DeclaredRootSecrets, Secrets
from meshwright.mesh.names import Namespace, SecretName, TrustDomain
from meshwright.mesh.policies.roots import MeshRootCertificate
from meshwright.mesh.policies.smi import PolicyKey
from tests.unit.certs.roots.memory import MemoryAuthority, Record

FIRST = SecretName(Namespace("mesh"), "first")
USED = (MeshRootCertificate(PolicyKey(Namespace("mesh"), "first"), FIRST),)


class CountingStore(MemoryAuthority):
    """A store that counts whole reads, each of which reads every file of a state directory."""

    reads = 0

    def read(self) -> StoredAuthority:
        """Return the present state."""
        self.reads += 1
        return super().read()


@pytest.fixture
def record(now: datetime) -> Record:
    """Return the record of a mesh with a CA of its own."""
    return Record(AuthorityState(StoredCa.of(new_root(TrustDomain("mesh.example"), now))))


def test_look_without_declared_roots_reads_no_file(record: Record, now: datetime) -> None:
    """Most meshes declare no root, and the state has the private key of the CA."""
    store = CountingStore(record)
    for declared in ({}, {FIRST: Fingerprint("1f")}):
        record.state = replace(record.state, declared_roots=declared)
        found = Secrets(store, None).declared_roots((), Fingerprint("1f"), Fingerprint(""), now)
        assert found == DeclaredRootSecrets((), False, {}, {})
        assert record.state.declared_roots == declared
    assert (store.reads, record.count) == (0, 0)


def test_look_at_declared_roots_reads_the_state_once(record: Record, now: datetime) -> None:
    """The first look writes the record, and later ones write nothing."""
    store = CountingStore(record)
    for number in (1, 2, 3):
        found = Secrets(store, None).declared_roots(USED, Fingerprint("1f"), Fingerprint(""), now)
        root = DeclaredRoot("mesh/first", Fingerprint("1f"), signs=True)
        assert found == DeclaredRootSecrets((root,), True, {}, {})
        assert (store.reads, record.count) == (number, 1)
    assert record.state.declared_roots == {FIRST: Fingerprint("1f")}


def test_root_of_a_deleted_object_rules_until_the_rotation_ends(record: Record, now: datetime) -> None:
    """Without objects a rotation from a declared root is continued, and commands are refused."""
    record.state = replace(record.state, declared_roots={FIRST: Fingerprint("1f")})
    found = Secrets(MemoryAuthority(record), None).declared_roots(
        (), Fingerprint("2f"), Fingerprint("1f"), now
    )
    assert found == DeclaredRootSecrets((), True, {}, {})
