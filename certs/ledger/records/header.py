"""Fields of the record about the ledger itself: the signing CA, and the first certificate. A pure module.

{"authority": "cd34", "first_authority": "ab12", "first": {"serial": "3f9a02", "issued_at": 1938928089}}
"""

from dataclasses import dataclass
from typing import Final, Self

from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.key import key_of

HEADER: Final = key_of("ledger")
"""Key of the record about the ledger."""

First = tuple[int, str]
"""The first certificate: time of issue in seconds since 1970, and the serial, as the sort key."""


@dataclass(frozen=True, slots=True)
class Header:
    """Facts about a ledger; None for a fact that is not recorded.

    Certificates without a recorded signer are attributed to `first_authority`. `first` is recorded, because
    old certificates are removed from the records of their proxies.
    """

    authority: str | None = None
    first_authority: str | None = None
    first: First | None = None

    @classmethod
    def read(cls, fields: Fields | None) -> Self:
        """Return the facts in the fields of the record; raise UnreadableContentError."""
        if fields is None:
            return cls()
        texts = [fields.get(name) for name in ("authority", "first_authority")]
        if not all(text is None or isinstance(text, str) for text in texts):
            raise UnreadableContentError(f"record {HEADER}: authority, first_authority: expected texts")
        authority, first_authority = (text if isinstance(text, str) else None for text in texts)
        return cls(authority, first_authority, _first(fields.get("first")))


def with_authority(fields: Fields | None, fingerprint: str) -> Fields | None:
    """Return the fields with another signing CA, or None if this CA is recorded already."""
    header = Header.read(fields)
    if header.authority == fingerprint:
        return None
    return {**(fields or {}), "authority": fingerprint}


def with_first_authority(fields: Fields | None, fingerprint: str) -> Fields | None:
    """Return the fields with the first signing CA, or None if any CA is recorded."""
    if Header.read(fields).authority is not None:
        return None
    return {**(fields or {}), "authority": fingerprint, "first_authority": fingerprint}


def with_first(fields: Fields | None, first: First) -> Fields | None:
    """Return the fields with the first certificate, or None if an earlier one is recorded."""
    recorded = Header.read(fields).first
    if recorded is not None and recorded <= first:
        return None
    issued_at, serial = first
    return {**(fields or {}), "first": {"serial": serial, "issued_at": issued_at}}


def _first(value: object) -> First | None:
    if value is None:
        return None
    if isinstance(value, dict):
        issued_at, serial = value.get("issued_at"), value.get("serial")
        if type(issued_at) is int and isinstance(serial, str):
            return issued_at, serial
    raise UnreadableContentError(f"record {HEADER}: first: expected a serial and issued_at")
