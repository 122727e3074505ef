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
from certs.authority_records.store import RecordedAuthority
from certs.custody import LEDGER_FILE, SHARED_FILE, AuthorityWithLedger
from certs.errors import StateError
from certs.ledger.records.fields import PROXIES
from certs.ledger.records.header import HEADER
from certs.ledger.records.ledger import RecordedLedger
from certs.pair_records.fields import SERVICES
from certs.pair_records.store import RecordedPairs
from certs.roots.first_proxy import FirstProxy
from certs.roots.succeeding_authority import open_authority
from certs.state import files, sealed_state
from meshwright.mesh.names import TrustDomain
from meshwright.records.contract import RecordStore, ReplicaId

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
        seal = RecordedDataKey(records, replica, loop, words).open()
        return cls(
            RecordedAuthority(records, replica, loop, seal),
            RecordedLedger(records, replica, loop),
            RecordedPairs(records, replica, loop, seal),
        )


def open_shared(
    stores: SharedStores, state: Path, trust_domain: TrustDomain, now: datetime, passphrase: Path | None
) -> AuthorityWithLedger:
    """Open the shared CA and ledger; the first server makes the CA. Call in a thread, after the first lists.

    Raises StateError.
    """
    seal, ledger, store = sealed_state.opened(state, passphrase), stores.ledger, stores.authority
    made = not store.read().state.has_ca

    def last_end() -> datetime | None:
        moments = [entry.not_after for entry in ledger.entries()]
        moments += [] if (end := stores.pairs.last_end()) is None else [end]
        return max(moments, default=None)

    whose = replace(
        open_authority(store, trust_domain, now, last_end, None), changing=None, why_not=NO_ROTATION
    )
    signer = whose.authority.fingerprint
    ledger.name_authority(signer)
    if ledger.authority() != signer:
        ledger.change_authority(signer)
    first = FirstProxy(store)
    first.note(ledger)
    # Without this mark a command or another start would make another CA in the directory.
    files.private_directory(state)
    files.write_private(state / SHARED_FILE, b"")
    _log.info("shared authority opened", root=signer, proxies=len(ledger.entries()))
    return AuthorityWithLedger(ledger, first, seal, store, whose, made, service_pairs=stores.pairs)


def _require_no_own_authority(state: Path) -> None:
    has_ca = AuthorityFiles(state).read().state.has_ca
    if has_ca or (state / LEDGER_FILE).exists():
        what = "CA" if has_ca else "ledger"
        raise StateError(
            f"the state directory {state} has a {what} of its own, but with the setting store kubernetes the "
            f"mesh uses a shared one: name an empty state directory. A {what} cannot be moved from a "
            "directory into the store yet"
        )
