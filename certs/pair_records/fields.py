r"""Fields of the record of a service certificate.

The record of the identity `cart` in the namespace `shop` has the key `services/shop/cart`. The private key is
encrypted for this record (`RecordSeal`). A writer keeps all fields that it does not know.

    {"certificate": "-----BEGIN CERTIFICATE-----\n...", "key": "c2VhbGVk..."}

A pure module.
"""

from datetime import datetime
from typing import Final

from certs.errors import CorruptPairError
from certs.keys.leaf import Leaf, read_leaf
from certs.keys.material import PrivateKey
from certs.keys.pair import Pair, matched_pair
from certs.state.sealing import RecordSeal
from certs.state.stored_pair import Holder
from meshwright.records.content import Fields
from meshwright.records.key import Key, key_of, words_of

SERVICES: Final = key_of("services")
"""Common beginning of the keys of all service certificates."""

_CERTIFICATE: Final = "certificate"
_KEY: Final = "key"


def key_of_holder(holder: Holder) -> Key:
    """Return the key of a service's record, which is equal to the holder.

    Raises ValueError for the holder of a server's certificate: each server has its own, in its state
    directory.
    """
    words = holder.split("/")
    if len(words) != 3 or words[0] != SERVICES:
        raise ValueError(
            f"the certificate of {holder!r} is not shared: only those of services are, for example "
            "services/shop/cart, and each server has the others in its state directory"
        )
    return key_of(*words)


def is_of_service(key: Key) -> bool:
    """Return whether a key is of the form `services/NAMESPACE/ACCOUNT`."""
    return len(words_of(key)) == 3


def with_pair(fields: Fields | None, key: Key, pair: Pair, seal: RecordSeal) -> Fields:
    """Return the fields of a record with another certificate and its encrypted private key."""
    return {
        **({} if fields is None else fields),
        _CERTIFICATE: pair.chain_pem.decode("ascii"),
        _KEY: seal.closed(pair.key.reveal(), key),
    }


def pair_in(fields: Fields, key: Key, seal: RecordSeal) -> Pair:
    """Return the certificate of a record with its key.

    Raises CorruptPairError for a damaged certificate or key, and for those of another record.
    """
    sealed = fields.get(_KEY)
    if not isinstance(sealed, str):
        raise CorruptPairError(f"record {key} cannot be used: field {_KEY} must be a text")
    try:
        return matched_pair(_chain(fields), PrivateKey(seal.opened(sealed, key)))
    except ValueError as error:
        # `from None`: a parser's message about a private key must not get into logs.
        raise CorruptPairError(f"record {key} cannot be used: {error}") from None


def serial_in(fields: Fields) -> str | None:
    """Return the serial of the certificate in a record; None if it is damaged."""
    leaf = _leaf(fields)
    return None if leaf is None else leaf.serial


def end_in(fields: Fields) -> datetime | None:
    """Return the end of validity of the certificate in a record; None if it is damaged."""
    leaf = _leaf(fields)
    return None if leaf is None else leaf.not_after


def _leaf(fields: Fields) -> Leaf | None:
    try:
        return read_leaf(_chain(fields))
    except ValueError:
        return None


def _chain(fields: Fields) -> bytes:
    chain = fields.get(_CERTIFICATE)
    if not isinstance(chain, str):
        raise ValueError(f"field {_CERTIFICATE} must be a text")  # noqa: TRY004 - about the content
    return chain.encode("ascii", "replace")
