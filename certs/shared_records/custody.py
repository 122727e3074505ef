"""Custody of the CA, the ledger and service certificates in records that several servers share.

The counterpart of `certs.custody`, which keeps them in a state directory. Here the state directory of each
server has only what is the server's own: the certificates of its listeners, signed by the shared CA.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import structlog

from certs.authority_records.data_key import SEAL as SEAL
from certs.authority_records.data_key import RecordedDataKey
from certs.authority_records.data_key import is_same_mesh as is_same_mesh
from certs.authority_records.evidence import CaEvidence
from certs.authority_records.fields import AUTHORITY as AUTHORITY
from certs.authority_records.store import RecordedAuthority
from certs.custody import LEDGER_FILE, AuthorityWithLedger, begun
from certs.errors import StateError
from certs.ledger.records.fields import PROXIES
from certs.ledger.records.header import HEADER, Header
from certs.ledger.records.ledger import RecordedLedger
from certs.pair_records.fields import SERVICES
from certs.pair_records.store import RecordedPairs
from certs.report_records.sidecar_reports import SidecarReports
from certs.report_records.store import RecordedReports
from certs.roots.first_proxy import FirstProxy
from certs.roots.succeeding_authority import open_authority
from certs.state import directory_marks, sealed_state
from certs.state.shared_mark import SharedMesh, require_mesh, require_no_mesh, write_mark
from meshwright.mesh.names import TrustDomain
from meshwright.records.content import Content
from meshwright.records.contract import RecordStore, ReplicaId
from meshwright.records.listing import listed_once
from meshwright.records.threads import ThreadCalls

LISTED: Final = (HEADER, PROXIES, SERVICES)
"""Common beginnings of the records that a server lists before it opens the CA."""

_log = structlog.get_logger("certs.opening")


@dataclass(frozen=True, slots=True)
class SharedStores:
    """A server's views of the shared CA, ledger and service certificates."""

    authority: RecordedAuthority
    ledger: RecordedLedger
    pairs: RecordedPairs
    reports: RecordedReports
    sidecars: SidecarReports
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
            _require_store_of(state)
            _require_no_loss(calls.run(_evidence(records)), has_seal=False)

        seal = RecordedDataKey(records, replica, loop, words).open(require_new)
        return cls(
            RecordedAuthority(records, replica, loop, seal),
            RecordedLedger(records, replica, loop),
            RecordedPairs(records, replica, loop, seal),
            RecordedReports(records, replica, loop, seal),
            SidecarReports(records, replica, loop, seal),
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
        _require_store_of(state)
        _require_no_loss(evidence, has_seal=True)

    def last_end() -> datetime | None:
        moments = [entry.not_after for entry in ledger.entries()]
        moments += [] if (end := stores.pairs.last_end()) is None else [end]
        return max(moments, default=None)

    whose = open_authority(store, trust_domain, now, last_end, None)
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


def has_own_mesh(state: Path) -> bool:
    """Return whether a state directory has a CA or a ledger that was not moved into the shared store yet.

    A moved directory counts if an older program, which does not know the mark, has used the ledger since: for
    example, after a rollback by one release. Raises StateError for a directory into which an import has not
    ended.
    """
    directory_marks.require_imported(state)
    moved = directory_marks.read_moved(state)
    return begun(state) and (moved is None or directory_marks.is_used_since_move(state, state / LEDGER_FILE))


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
    if has_own_mesh(state):
        raise StateError(
            f"the state directory {state} has a CA or a ledger of its own, but the mesh uses the shared one: "
            "move the mesh with `meshwright state move`, or name an empty state directory"
        )


def _require_store_of(state: Path) -> None:
    """Refuse to make a new CA for a mesh that was moved: its store was emptied, or another one is meant."""
    if (moved := directory_marks.read_moved(state)) is not None:
        raise StateError(
            f"the mesh of {state} (CA {moved.root}) was moved into the store {moved.store} at "
            f"{moved.at.isoformat()}, but this store has no mesh: check the settings of the store, or "
            "restore a backup with `meshwright state import`. To move the older state in this directory once "
            f"more, remove {state / directory_marks.MOVED_FILE}"
        )
