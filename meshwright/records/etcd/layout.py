"""Keys in etcd, all below `/meshwright/TRUST-DOMAIN/`, so that a role for this prefix suffices.

    /meshwright/mesh.example/records/proxies/shop/cart/9f0c
    /meshwright/mesh.example/replicas/a-5fd8
    /meshwright/mesh.example/candidates/a-5fd8/694d8f2c

A pure module.
"""

from dataclasses import dataclass

from meshwright.etcd.values import LeaseId, Span
from meshwright.records.contract import ReplicaId
from meshwright.records.key import Key, key_of


@dataclass(frozen=True, slots=True)
class Layout:
    """The keys of one mesh. Raises ValueError for a trust domain with other characters than a word."""

    trust_domain: str

    def __post_init__(self) -> None:
        key_of(self.trust_domain)

    def key_of_record(self, key: Key) -> bytes:
        """Return the name of a record's key."""
        return self._below("records", key)

    def record_of(self, name: bytes) -> Key | None:
        """Return the key of a record from the name of its key; None for another name."""
        try:
            return Key(name.removeprefix(self._below("records", "")).decode("ascii"))
        except UnicodeDecodeError:
            return None

    def records_within(self, prefix: Key) -> Span:
        """Return the span of the records within a prefix, with a few others.

        `tokens`, `tokens/a`, and also `tokens-a` and `tokens.a` are in the span of `tokens`, because `-` and
        `.` are before the slash: use `meshwright.records.key.is_within` besides.
        """
        start = self.key_of_record(prefix)
        return Span(start, start + b"0")

    def replica(self, replica: ReplicaId) -> bytes:
        """Return the name of the key with a replica's state."""
        return self._below("replicas", replica)

    def replica_of(self, name: bytes) -> ReplicaId:
        """Return the replica whose state has a key."""
        return ReplicaId(name.removeprefix(self._below("replicas", "")).decode("utf-8", "replace"))

    @property
    def replicas(self) -> Span:
        """Return the span of all replicas."""
        return Span(self._below("replicas", ""), self._below("replicas0"))

    def candidate(self, replica: ReplicaId, lease: LeaseId) -> bytes:
        """Return the name of a candidate's key, which no other candidate ever has."""
        return self._below("candidates", replica, f"{lease:x}")

    @property
    def candidates(self) -> Span:
        """Return the span of all candidates."""
        return Span(self._below("candidates", ""), self._below("candidates0"))

    def _below(self, *words: str) -> bytes:
        return "/".join(("/meshwright", self.trust_domain, *words)).encode()
