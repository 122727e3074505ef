"""The file of `meshwright state export`: a header for people, and the sealed state of a mesh.

The file has two lines. The first is the header, in JSON, without a secret. The second is the state, encrypted
with a data key (AES-256-GCM), which the header has in a form encrypted with the passphrase. The encryption
also covers the header, which so cannot be changed unnoticed.

    {"format": "meshwright-state", "form": 1, "version": "0.2.0", "trust_domain": "cluster.local",
     "root": "5f2c8a...", "exported_at": "2026-11-30T05:00:00+00:00",
     "counts": {"proxy_certificates": 3, ...},
     "key": {"kdf": "scrypt", "n": 32768, ..., "data_key": "9ab0..."}}

A pure module, but for the random keys.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from certs.errors import StateError
from certs.ledger.entry import LedgerState
from certs.state.json_fields import json_field, json_object, parse_time
from certs.state.sealing import RecordSeal, new_data_key, read_wrapped, wrapped
from meshwright.mesh.names import TrustDomain
from meshwright.transfer.mesh_state import FORM, MeshState, decode, encode

LARGEST_HEADER: Final = 16 * 1024
"""Limit of the header in bytes, so that a foreign file is not parsed as a whole."""

_FORMAT: Final = "meshwright-state"
_ONE: Final = {
    "proxy_certificates": "proxy certificate",
    "revoked": "revoked",
    "service_certificates": "service certificate",
    "join_tokens": "join token",
}


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file, without the encrypted data key.

    `version` is the version of the writing program, `root` the fingerprint of the signing CA.
    """

    version: str
    trust_domain: TrustDomain
    root: str
    exported_at: datetime
    counts: Mapping[str, int]

    @classmethod
    def of(cls, mesh: MeshState, version: str, trust_domain: TrustDomain, now: datetime) -> "Header":
        """Return the header for a state."""
        return cls(version, trust_domain, mesh.root, now.replace(microsecond=0), counts(mesh))

    def document(self) -> dict[str, Any]:
        """Return the header as JSON values."""
        return {
            "format": _FORMAT,
            "form": FORM,
            "version": self.version,
            "trust_domain": self.trust_domain,
            "root": self.root,
            "exported_at": self.exported_at.isoformat(),
            "counts": dict(self.counts),
        }


def counts(mesh: MeshState) -> Mapping[str, int]:
    """Return how many things a state has, by kind; `revoked` are proxy certificates too."""
    return {
        "proxy_certificates": len(mesh.entries),
        "revoked": sum(entry.state is LedgerState.REVOKED for entry in mesh.entries),
        "service_certificates": len(mesh.pairs),
        "join_tokens": len(mesh.tokens),
    }


def in_words(numbers: Mapping[str, int]) -> str:
    """Return counts for people, for example `3 proxy certificates (1 revoked), 1 join token, ...`."""
    proxies, services, tokens = (
        f"{numbers.get(name, 0)} {_ONE[name]}{'' if numbers.get(name, 0) == 1 else 's'}"
        for name in ("proxy_certificates", "service_certificates", "join_tokens")
    )
    return f"{proxies} ({numbers.get('revoked', 0)} revoked), {services}, {tokens}"


def sealed(mesh: MeshState, header: Header, passphrase: bytes) -> str:
    """Return the text of a file. Raises StateError for a state with an unreadable part."""
    data_key = new_data_key()
    key = json.loads(wrapped(data_key, passphrase).written())
    # The header is the first line, so no part of the text may have a line break.
    first = json.dumps({**header.document(), "key": key}, ensure_ascii=True, allow_nan=False)
    return f"{first}\n{RecordSeal(data_key).closed(encode(mesh), _digest(first))}\n"


def read_header(text: str) -> Header:
    """Return the header of a file. Raises StateError for another file, or one of a newer version."""
    return _header(_document(text.partition("\n")[0]))


def opened(text: str, passphrase: bytes) -> tuple[Header, MeshState]:
    """Return the header and the state in a file. Raises StateError."""
    first, _, rest = text.partition("\n")
    document = _document(first)
    header = _header(document)
    try:
        wrapped_key = read_wrapped(json.dumps(document.get("key")).encode())
    except ValueError:
        raise StateError(
            "the header is damaged: field key is not an encrypted data key; use another copy"
        ) from None
    try:
        data_key = wrapped_key.data_key(passphrase)
    except ValueError:
        raise StateError(
            "the passphrase is wrong, or the header is damaged: use the passphrase of the export"
        ) from None
    try:
        content = RecordSeal(data_key).opened(rest.removesuffix("\n"), _digest(first))
    except ValueError:
        raise StateError("the file is damaged or was truncated: use another copy") from None
    return header, decode(content)


def _document(first: str) -> Mapping[str, Any]:
    foreign = StateError("the file is not an export of `meshwright state export`")
    if len(first) > LARGEST_HEADER:
        raise foreign
    try:
        document = json_object(first.encode())
    except (ValueError, RecursionError):
        raise foreign from None
    if document.get("format") != _FORMAT:
        raise foreign
    form = document.get("form")
    if type(form) is not int or form < 1:
        raise StateError("the header is damaged: field form must be an integer from 1; use another copy")
    if form > FORM:
        raise StateError(
            f"the file was written by a newer version of Meshwright ({str(document.get('version'))[:40]}): "
            f"it has form {form}, and this version reads forms up to {FORM}; use the newer version"
        )
    return document


def _header(document: Mapping[str, Any]) -> Header:
    try:
        return Header(
            json_field(document, "version", str),
            TrustDomain(json_field(document, "trust_domain", str)),
            json_field(document, "root", str),
            json_field(document, "exported_at", parse_time),
            json_field(document, "counts", _counts),
        )
    except ValueError as error:
        raise StateError(f"the header is damaged: {error}; use another copy") from None


def _counts(value: Mapping[str, Any]) -> Mapping[str, int]:
    return {str(name): int(number) for name, number in value.items()}


def _digest(first: str) -> str:
    return hashlib.sha256(first.encode()).hexdigest()
