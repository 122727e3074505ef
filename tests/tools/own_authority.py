"""The CA of a state directory for tests that need no server: made at the first call, as by a first start."""

from datetime import datetime
from pathlib import Path

from certs.authority_files.store import AuthorityFiles
from certs.issuers.authority import CertificateAuthority
from certs.issuers.stored_ca import root_of
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_store import CaSlot
from certs.state.sealing import PLAIN, Seal
from meshwright.mesh.names import TrustDomain


def own_authority(
    state: Path, trust_domain: TrustDomain, now: datetime, seal: Seal = PLAIN
) -> CertificateAuthority:
    """Return the signing CA of a state directory, without a root rotation. Raises StateError."""
    store = AuthorityFiles(state, seal)
    ChangingAuthority(store, trust_domain, now)
    root = root_of(store.read().state.ca, store.names(CaSlot.SIGNER), trust_domain, now)
    return CertificateAuthority(root, trust_domain)
