"""Certificates with their keys, kept: who keeps them, and whether one can be used again."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NewType, Protocol

import structlog

from certs.errors import CorruptPairError, StateError
from certs.issuers.contract import Issuer, Names, Usage
from certs.leaf import stands_below
from certs.pair import Pair, issue_pair
from certs.renewal import due
from mesh.identity import ServiceIdentity

Holder = NewType("Holder", str)
"""Whose a pair is: words with slashes between them, which are file names anywhere."""

ADS_SERVER: Final = Holder("ads")
WEBHOOK: Final = Holder("webhook")

_log = structlog.get_logger("certs.stored")


def holder_of(identity: ServiceIdentity) -> Holder:
    """Return the holder that a service identity is; its parts are names of DNS, which hold no slash."""
    return Holder(f"services/{identity.namespace}/{identity.service_account}")


class Pairs(Protocol):
    """Where pairs are kept, one for each holder. Ours are files (certs.pair_files).

    What is wrong is raised: unlike other things that are kept, a key that is there and cannot be read may be
    somebody's mistake, and is not silently made anew. Safe to use from several threads and processes: a pair
    is replaced whole or not at all, and whoever keeps one last has it. A power failure may lose or spoil
    one that was kept just before.
    """

    def load(self, holder: Holder) -> Pair | None:
        """Return a holder's pair, None where there is none.

        Raises CorruptPairError where what is kept is no certificate and key that belong together, StateError
        where it cannot be read at all.
        """

    def keep(self, holder: Holder, pair: Pair) -> None:
        """Keep a pair in the place of the holder's; private. Raises StateError, and then nothing is other."""

    def place(self, holder: Holder) -> str:
        """Return where people find a holder's pair."""


def kept_pair(
    pairs: Pairs,
    holder: Holder,
    issuer: Issuer,
    usage: Usage,
    names: Names,
    lifetime: Callable[[], timedelta],
    now: datetime,
) -> tuple[Pair, str | None]:
    """Return the pair that is kept if it still fits, otherwise one that was issued, and is kept now.

    The text says of one that was issued why it is not kept, empty if it is: without it the mesh would stop
    when the one before expires, hours after the disk was full. None says that the kept one fits. Raises
    RequestError, IssuerError, and StateError where what is kept cannot be read.
    """
    pair = _fitting(pairs, holder, usage, names, issuer, now)
    if pair is not None:
        return pair, None
    pair = issue_pair(issuer, usage, names, lifetime(), now)
    try:
        pairs.keep(holder, pair)
    except StateError as error:
        return pair, str(error)
    return pair, ""


def misfit(pair: Pair, usage: Usage, names: Names, bundle_pem: bytes, now: datetime) -> str:
    """Say why a pair cannot go on being used for this; empty when it fits.

    The common name is not compared: for the kinds that are kept, nobody decides anything by it.
    """
    if not pair.leaf.serves(usage):
        return "its key usage is another"
    if pair.leaf.names.alternatives != names.alternatives:
        return "its names are others"
    if not stands_below(pair.chain_pem, bundle_pem):
        return "it does not stand below the root that signs"
    if due(pair.leaf, now):
        return "it is due for renewal"
    return ""


def _fitting(
    pairs: Pairs, holder: Holder, usage: Usage, names: Names, issuer: Issuer, now: datetime
) -> Pair | None:
    """Return the kept pair if it still fits; None, and a line in the log, where a new one is needed.

    A corrupt one is a warning only: what it held can be issued again. One that cannot be read at all (its
    permissions) is StateError: a new one could not be kept either.
    """
    try:
        pair = pairs.load(holder)
    except CorruptPairError as error:
        _log.warning("stored certificate replaced", reason=str(error))
        return None
    if pair is None:
        return None
    reason = misfit(pair, usage, names, issuer.signing_bundle(), now)
    if reason:
        said = {"path": pairs.place(holder), "serial": pair.leaf.serial}
        _log.info("stored certificate replaced", **said, reason=reason)
        return None
    return pair
