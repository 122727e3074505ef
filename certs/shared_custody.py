"""Custody of the CA, the ledger and service certificates in records that several servers share.

The counterpart of `certs.custody`, which keeps them in a state directory. Here the state directory of each
server has only what is the server's own: the certificates of its listeners, signed by the shared CA.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import structlog

from certs.authority_files.store import AuthorityFiles
from certs.authority_records.data_key import SEAL as SEAL
from certs.authority_records.data_key import RecordedDataKey
from certs.authority_records.fields import AUTHORITY as AUTHORITY
from certs.authority_records.store import RecordedAuthority
from certs.custody import LEDGER_FILE, AuthorityWithLedger
from certs.errors import StateError
from certs.ledger.records.fields import PROXIES
from certs.ledger.records.header import HEADER, Header
from certs.ledger.records.ledger import RecordedLedger
from certs.pair_records.fields import SERVICES
from certs.pair_records.store import RecordedPairs
from certs.roots.first_proxy import FirstProxy
from certs.roots.succeeding_authority import open_authority
from certs.shared_evidence import CaEvidence
from certs.state import sealed_state
from certs.state.shared_mark import SharedMesh, require_mesh, require_no_mesh, write_mark
from meshwright.mesh.names import TrustDomain
from meshwright.records.content import Content
from meshwright.records.contract import RecordStore, ReplicaId
from meshwright.records.listing import listed_once
from meshwright.records.threads import ThreadCalls

LISTED: Final = (HEADER, PROXIES, SERVICES)
"""Common beginnings of the records that a server lists before it opens the CA."""

NO_ROTATION: Final = (
    "the root cannot be rotated yet while several servers share the CA (setting store); it is valid for ten "
    "years from its creation"
)

_log = structlog.get_logger("certs.opening")


@dataclass(frozen=True, slots=True)
class SharedStores:
    """A server's views of the shared CA, ledger and service certificates."""

    authority: RecordedAuthority
    ledger: RecordedLedger
    pairs: RecordedPairs
    mesh: str
    """Identity of the mesh: that of its data key."""

    @classmethod
    def open(
        cls,
        records: RecordStore,
        replica: ReplicaId,
        loop: asyncio.AbstractEventLoop,
        state: Path,
        passphrase: Path | None,
    ) -> Self:
        """Open the stores with the shared data key, which the first server creates; call in a thread.

        `loop` is the event loop of the store. `passphrase` is the file with the passphrase of the data key.
        Raises StateError, also for a state directory with a CA of its own; the store is not changed then.
        """
        _require_no_own_authority(state)
        words = None if passphrase is None else sealed_state.read_passphrase(passphrase, state)
        calls = ThreadCalls(loop)

        def require_new() -> None:
            require_no_mesh(state)
            _require_no_loss(calls.run(_evidence(records)), has_seal=False)

        seal = RecordedDataKey(records, replica, loop, words).open(require_new)
        return cls(
            RecordedAuthority(records, replica, loop, seal),
            RecordedLedger(records, replica, loop),
            RecordedPairs(records, replica, loop, seal),
            seal.mesh,
        )


def open_shared(
    stores: SharedStores, state: Path, trust_domain: TrustDomain, now: datetime, passphrase: Path | None
) -> AuthorityWithLedger:
    """Open the shared CA and ledger; the first server makes the CA. Call in a thread, after the first lists.

    Raises StateError.
    """
    seal, ledger, store = sealed_state.opened(state, passphrase), stores.ledger, stores.authority
    # The evidence before the CA, because the first server writes the CA first.
    evidence = _evidence_of(ledger, stores.pairs)
    if made := not store.read().state.has_ca:
        _require_no_loss(evidence, has_seal=True)

    def last_end() -> datetime | None:
        moments = [entry.not_after for entry in ledger.entries()]
        moments += [] if (end := stores.pairs.last_end()) is None else [end]
        return max(moments, default=None)

    whose = replace(
        open_authority(store, trust_domain, now, last_end, None), changing=None, why_not=NO_ROTATION
    )
    signer = whose.authority.fingerprint
    there = SharedMesh(stores.mesh, signer)
    require_mesh(state, there)
    ledger.name_authority(signer)
    if ledger.authority() != signer:
        ledger.change_authority(signer)
    first = FirstProxy(store)
    first.note(ledger)
    write_mark(state, there)
    _log.info("shared authority opened", root=signer, proxies=len(ledger.entries()))
    return AuthorityWithLedger(ledger, first, seal, store, whose, made, service_pairs=stores.pairs)


async def _evidence(records: RecordStore) -> CaEvidence:
    """Return what the records say about a CA, before they are followed. Raises RecordsError."""
    header, proxies, services = [await listed_once(records, prefix) for prefix in LISTED]
    facts = [Header.read(Content.decode(record.content).fields) for record in header]
    fingerprints = (text for fact in facts for text in (fact.authority, fact.first_authority))
    return CaEvidence.of(fingerprints, len(proxies), len(services))


def _evidence_of(ledger: RecordedLedger, pairs: RecordedPairs) -> CaEvidence:
    entries = ledger.entries()
    signers = {ledger.authority(), *(entry.signer for entry in entries)}
    return CaEvidence.of(signers, len({entry.common_name for entry in entries}), pairs.count())


def _require_no_loss(evidence: CaEvidence, *, has_seal: bool) -> None:
    if (loss := evidence.loss(has_seal)) is not None:
        raise StateError(loss)


def _require_no_own_authority(state: Path) -> None:
    has_ca = AuthorityFiles(state).read().state.has_ca
    if has_ca or (state / LEDGER_FILE).exists():
        what = "CA" if has_ca else "ledger"
        raise StateError(
            f"the state directory {state} has a {what} of its own, but with the setting store kubernetes the "
            f"mesh uses a shared one: name an empty state directory. A {what} cannot be moved from a "
            "directory into the store yet"
        )
