"""Certificates with their keys in the state directory, and whether a stored one can be used again."""

import re
from datetime import datetime
from pathlib import Path
from typing import Final

import structlog

from certs import files
from certs.errors import CorruptPairError
from certs.issuers.contract import Issuer, Names, Usage
from certs.leaf import stands_below
from certs.material import PrivateKey
from certs.pair import Pair, matched_pair
from certs.rotation import due

_KEY_BLOCK: Final = re.compile(rb"-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----\n?", re.DOTALL)

_log = structlog.get_logger("certs.stored")


def reusable_pair(path: Path, usage: Usage, names: Names, issuer: Issuer, now: datetime) -> Pair | None:
    """Return the stored pair if it still fits; None, and a line in the log, where a new one is needed.

    A corrupt file is a warning only: what it held can be issued again. A file that cannot be read at all
    (its permissions) is StateError: a new one could not be stored either.
    """
    try:
        pair = load_pair(path)
    except CorruptPairError as error:
        _log.warning("stored certificate replaced", reason=str(error))
        return None
    if pair is None:
        return None
    reason = misfit(pair, usage, names, issuer.trust_bundle(), now)
    if reason:
        _log.info("stored certificate replaced", path=str(path), serial=pair.leaf.serial, reason=reason)
        return None
    return pair


def load_pair(path: Path) -> Pair | None:
    """Read a stored pair; None where there is none.

    Raises CorruptPairError where the file holds no certificate and key that belong together, StateError
    where it cannot be read at all.
    """
    content = files.read(path)
    if content is None:
        return None
    keys = _KEY_BLOCK.findall(content)
    if len(keys) != 1:
        raise CorruptPairError(f"{path} does not hold exactly one private key (PEM, PKCS#8)")
    try:
        return matched_pair(_KEY_BLOCK.sub(b"", content), PrivateKey(keys[0]))
    except ValueError as error:
        # Cut from its cause: what a parser says of a file with a key in it is not ours to pass on.
        raise CorruptPairError(f"{path} cannot be used: {error}") from None


def store_pair(path: Path, pair: Pair) -> None:
    """Keep a pair in one file (0600), key first: one file is replaced as a whole, two could not be."""
    files.private_directory(path.parent)
    files.write_private(path, pair.key.reveal() + pair.chain_pem)


def misfit(pair: Pair, usage: Usage, names: Names, bundle_pem: bytes, now: datetime) -> str:
    """Say why a pair cannot go on being used for this; empty when it fits.

    The common name is not compared: for the kinds that are kept, nobody decides anything by it.
    """
    if not pair.leaf.serves(usage):
        return "its key usage is another"
    if pair.leaf.names.alternatives != names.alternatives:
        return "its names are others"
    if not stands_below(pair.chain_pem, bundle_pem):
        return "it is not signed by a trusted root"
    if due(pair.leaf, now):
        return "it is due for renewal"
    return ""
