"""Values of etcd: keys with contents, and the position of a store. A pure module."""

from dataclasses import dataclass, field
from typing import Final, NewType, Self

from protos.meshwright.etcd.v3 import etcd_pb2 as pb

LeaseId = NewType("LeaseId", int)
"""Name of a lease in the store."""

NO_LEASE: Final = LeaseId(0)
"""The lease of a key without a time limit."""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A key: name, content, revisions of the creation and of the last change, and the lease."""

    key: bytes
    value: bytes = field(repr=False)
    created: int
    modified: int
    lease: LeaseId = NO_LEASE

    @classmethod
    def of(cls, message: pb.KeyValue) -> Self:
        """Return the value of a message."""
        return cls(
            message.key,
            message.value,
            message.create_revision,
            message.mod_revision,
            LeaseId(message.lease),
        )


@dataclass(frozen=True, slots=True)
class Position:
    """A moment in the history of one store: cluster, term of the leader, and last revision."""

    cluster: int
    term: int
    revision: int

    @classmethod
    def of(cls, header: pb.ResponseHeader) -> Self:
        """Return the position of a response."""
        return cls(header.cluster_id, header.raft_term, header.revision)

    def is_behind(self, earlier: "Position") -> bool:
        """Return whether the store is another one than earlier, or was restored from an older snapshot.

        A restored store has the same cluster ID if the members have the same names, so revision and term are
        compared too. A member behind the others looks the same for a moment.
        """
        return self.cluster != earlier.cluster or self.term < earlier.term or self.revision < earlier.revision


@dataclass(frozen=True, slots=True)
class Span:
    """A range of keys: from the first one to before the end."""

    start: bytes
    end: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a range at one revision; `more` if further keys follow."""

    items: tuple[KeyValue, ...]
    position: Position
    more: bool
