"""Servers of one mesh on one store: data key, authority and service certificates, as a server opens them."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from certs.authority_records.data_key import RecordedDataKey
from certs.authority_records.store import RecordedAuthority
from certs.keys.material import ServiceCertificate
from certs.manager import CertificateManager
from certs.pair_records.store import RecordedPairs
from certs.roots.authority import ChangingAuthority
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain
from meshwright.records.contract import RecordStore, ReplicaId

DOMAIN: Final = TrustDomain("mesh.example")
CART: Final = ServiceIdentity(Namespace("shop"), ServiceAccountName("cart"))


@dataclass(frozen=True)
class MeshServer:
    """One server: its authority with the store, and its service certificates."""

    store: RecordedAuthority
    authority: ChangingAuthority
    pairs: RecordedPairs
    manager: CertificateManager

    def certificate(self, now: datetime) -> tuple[bytes, bytes]:
        """Return the certificate of CART that a proxy gets from this server, and its key."""
        held: ServiceCertificate = self.manager.ensure(CART, ("cart.shop",), now)
        return held.chain_pem, held.key.reveal()


def start(
    records: RecordStore,
    replica: str,
    loop: asyncio.AbstractEventLoop,
    now: datetime,
    passphrase: bytes | None = None,
    turn: int = 0,
) -> MeshServer:
    """Start a server; call in a thread, and follow `pairs` before certificates are needed."""
    me = ReplicaId(replica)
    seal = RecordedDataKey(records, me, loop, passphrase).open()
    store = RecordedAuthority(records, me, loop, seal)
    authority = ChangingAuthority(store, DOMAIN, now)
    pairs = RecordedPairs(records, me, loop, seal)
    manager = CertificateManager(authority, pairs, timedelta(days=1), lambda: 0.0, turn=lambda _: turn)
    return MeshServer(store, authority, pairs, manager)
