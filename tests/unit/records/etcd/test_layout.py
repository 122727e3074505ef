"""Tests of the keys of records in etcd."""

import pytest

from meshwright.etcd.values import LeaseId, Span
from meshwright.records.contract import ReplicaId
from meshwright.records.etcd.layout import Layout
from meshwright.records.key import key_of

LAYOUT = Layout("mesh.example")


def test_keys_are_below_the_trust_domain() -> None:
    """A role for one prefix is enough, and records never meet keys of replicas."""
    replica = ReplicaId("a-5fd8")
    assert LAYOUT.key_of_record(key_of("tokens", "4f1c")) == b"/meshwright/mesh.example/records/tokens/4f1c"
    assert LAYOUT.replica(replica) == b"/meshwright/mesh.example/replicas/a-5fd8"
    assert LAYOUT.candidate(replica, LeaseId(255)) == b"/meshwright/mesh.example/candidates/a-5fd8/ff"


def test_key_of_a_record_comes_back() -> None:
    """A name that is no text is passed over: somebody else wrote it."""
    key = key_of("proxies", "shop", "cart")
    assert LAYOUT.record_of(LAYOUT.key_of_record(key)) == key
    assert LAYOUT.record_of(b"/meshwright/mesh.example/records/\xff") is None
    assert LAYOUT.replica_of(LAYOUT.replica(ReplicaId("a"))) == "a"


def test_span_has_the_record_and_all_below() -> None:
    """The span ends before the first name that does not begin with the words and a slash."""
    span = LAYOUT.records_within(key_of("tokens"))
    for words, expected in (
        (("tokens",), True),
        (("tokens", "a"), True),
        (("tokens", "zzz", "0"), True),
        (("token",), False),
        (("tokens0",), False),
        (("tokensa",), False),
    ):
        assert (span.start <= LAYOUT.key_of_record(key_of(*words)) < span.end) is expected
    assert LAYOUT.replicas == Span(
        b"/meshwright/mesh.example/replicas/", b"/meshwright/mesh.example/replicas0"
    )
    assert LAYOUT.candidates.start < LAYOUT.candidate(ReplicaId("a"), LeaseId(1)) < LAYOUT.candidates.end


@pytest.mark.parametrize("trust_domain", ["", "a/b", "..", "a b"])
def test_trust_domain_is_one_word(trust_domain: str) -> None:
    """Another text would reach the keys of another mesh."""
    with pytest.raises(ValueError, match="of a key"):
        Layout(trust_domain)
