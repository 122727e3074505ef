"""Kinds of stores for the state that cannot be computed from the mesh."""

from enum import StrEnum


class StoreKind(StrEnum):
    """The place of the CA, the ledger of proxy certificates, service certificates and join tokens."""

    DIRECTORY = "directory"
    KUBERNETES = "kubernetes"
    ETCD = "etcd"
