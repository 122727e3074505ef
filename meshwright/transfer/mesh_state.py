"""The shared state of a mesh as one value, and its form inside a sealed file.

The form has the fields of shared records, with private keys in clear. Never write the form unsealed:

    {"authority": {"ca": {"certificate": "-----BEGIN...", "key": "-----BEGIN..."}, "first_proxy": "3f9a02"},
     "data_key": "5f2c...",
     "gateway_secrets": [["mesh", "gateway"]],
     "ledger": {"authority": "cd34", "first": {"issued_at": 1938928089, "serial": "3f9a02"}},
     "proxies": {"9f0c.cart.shop": {"certificates": {"3f9a02": {"issued_at": 1938928089, ...}},
                                    "rejected": {"0b1f9c...": {"times": 2, ...}}}},
     "services": {"services/shop/cart": {"certificate": "-----BEGIN...", "key": "-----BEGIN..."}},
     "tokens": {"0123456789ab": {"token": {...}, "uses": {"77aa...": {"at": 1938928089, "key": "77aa..."}}}}}

Equal states have equal bytes. A pure module.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from certs.authority_records.fields import state_in, with_state
from certs.errors import StateError
from certs.issuers.root import fingerprint_of_ca
from certs.issuers.stored_ca import readable
from certs.keys.pair import Pair
from certs.ledger.entry import LedgerEntry
from certs.ledger.records.fields import entries_in, in_order, with_entries
from certs.ledger.records.header import First, Header, with_authority, with_first
from certs.pair_records.fields import key_of_holder, pair_in, with_pair
from certs.roots.authority_state import AuthorityState
from certs.state.sealing import RecordSeal
from certs.state.stored_pair import Holder
from meshwright.delivery.quarantine.verdict_fields import verdicts_in
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.enrolment.store.token_fields import (
    TokenWithUses,
    read_time_of_use,
    read_token_fields,
    stored_fields,
    use_fields,
)
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, SecretName
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.transfer.rejections import by_name, transferable, with_rejections
from xds.cache import NodeKey

UNREADABLE_PAIR: Final = "service certificate left out, because its record or file cannot be read"

FORM: Final = 1
"""Number of the form that this version writes, and the newest that it reads."""


@dataclass(frozen=True, slots=True)
class MeshState:
    """The state that all servers of a mesh share, whatever keeps it.

    - `authority`: CAs, a root rotation, issuers before, declared roots, the first proxy certificate.
    - `signer`: fingerprint of the signing CA, as the ledger has recorded; None without a record.
    - `first`: the first certificate ever, which may be missing in `entries`, because stores forget.
    - `entries`: the ledger, sorted by common name, time of issue and serial.
    - `pairs`: service certificates with their keys.
    - `tokens`: join tokens with their uses, sorted by id.
    - `gateway_secrets`: the Secrets with certificates for gateways.
    - `rejections`: policy that proxies in the ledger reject, sorted by proxy and unit.
    - `data_key`: the key to encrypt private keys in a store, which identifies the mesh there. A directory
      has none. The key is not compared, because private keys are encrypted anew at each place.
    """

    authority: AuthorityState
    signer: str | None = None
    first: First | None = None
    entries: tuple[LedgerEntry, ...] = ()
    pairs: Mapping[Holder, Pair] = field(default_factory=dict)
    tokens: tuple[TokenWithUses, ...] = ()
    gateway_secrets: frozenset[SecretName] = frozenset()
    rejections: tuple[Verdict, ...] = ()
    data_key: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def root(self) -> str:
        """Return the fingerprint of the signing CA. Raises StateError without a readable CA."""
        return root_in(self.authority)


def root_in(authority: AuthorityState) -> str:
    """Return the fingerprint of the signing CA. Raises StateError without a readable CA."""
    certificate = None if authority.ca is None else readable(authority.ca.certificate)
    if certificate is None:
        raise StateError(
            "the mesh has no CA of its own, because its CA is in files of another program: its state cannot "
            "be moved or exported"
        )
    return fingerprint_of_ca("of the mesh", certificate, "restore the CA from a backup")


def first_of(entries: Iterable[LedgerEntry], recorded: First | None = None) -> First | None:
    """Return the first certificate of these entries, or the recorded one if that is earlier."""
    firsts = [(int(entry.issued_at.timestamp()), entry.serial) for entry in entries]
    return min([*firsts, *filter(None, (recorded,))], default=None)


def require_readable(authority: AuthorityState) -> None:
    """Raise StateError for a state with a part that cannot be read: the part would be lost."""
    parts: list[object] = [
        authority.rotation,
        authority.service_issuers,
        authority.channel_issuers,
        authority.first_proxy,
        authority.declared_roots,
    ]
    for stored in filter(None, (authority.ca, authority.other)):
        parts += [stored.certificate, stored.key, stored.roots]
    for part in parts:
        readable(part)


class _InsideSealedFile(RecordSeal):
    """Secrets as they are, inside a content that is encrypted as a whole."""

    def __init__(self) -> None:
        super().__init__(bytes(32))

    def closed(self, secret: bytes, key: str) -> str:
        """Return a secret as text."""
        del key
        return secret.decode("ascii")

    def opened(self, text: str, key: str) -> bytes:
        """Return the secret in a text."""
        del key
        return text.encode("ascii")


_CLEAR: Final = _InsideSealedFile()


def encode(mesh: MeshState) -> bytes:
    """Return the form inside a sealed file, which has private keys in clear. Raises StateError."""
    require_readable(mesh.authority)
    rejections = by_name(mesh.rejections)
    content: dict[str, object] = {
        "authority": with_state({}, mesh.authority, _CLEAR),
        "gateway_secrets": [[secret.namespace, secret.name] for secret in sorted(mesh.gateway_secrets)],
        "ledger": header_fields(mesh),
        "proxies": {
            name: _proxy_fields(entries, rejections.get(name, ()))
            for name, entries in groupby(mesh.entries, lambda entry: entry.common_name)
        },
        "services": {
            holder: with_pair(None, key_of_holder(holder), pair, _CLEAR)
            for holder, pair in mesh.pairs.items()
        },
        "tokens": {each.stored.record.id: _token_fields(each) for each in mesh.tokens},
    }
    if mesh.data_key is not None:
        content["data_key"] = mesh.data_key.hex()
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.encode()


def decode(content: bytes) -> MeshState:
    """Return the state in the content of a sealed file. Raises StateError, without a part of the content."""
    try:
        return _decoded(json.loads(content))
    except (KeyError, TypeError, AttributeError, ValueError, UnreadableContentError) as error:
        # `from None`: a parser's message about a private key must not get into logs.
        raise StateError(
            f"the content of the file has another form than expected ({type(error).__name__})"
        ) from None


def _decoded(content: Mapping[str, Any]) -> MeshState:
    authority, header = state_in(content["authority"], _CLEAR), Header.read(content["ledger"])
    require_readable(authority)
    entries = [
        entry
        for name, fields in content["proxies"].items()
        for entry in entries_in(ProxyName.parse(name), fields)
    ]
    rejections = [
        verdict
        for name, fields in content["proxies"].items()
        for verdict in verdicts_in(NodeKey(name), fields).verdicts
    ]
    pairs = {
        Holder(holder): pair_in(fields, key_of_holder(Holder(holder)), _CLEAR)
        for holder, fields in content["services"].items()
    }
    tokens = tuple(
        TokenWithUses(
            read_token_fields(token, fields["token"]),
            {key: read_time_of_use(use) for key, use in fields["uses"].items()},
        )
        for token, fields in sorted(content["tokens"].items())
    )
    secrets = frozenset(
        SecretName(Namespace(namespace), name) for namespace, name in content["gateway_secrets"]
    )
    key = bytes.fromhex(content["data_key"]) if "data_key" in content else None
    return MeshState(
        authority,
        header.authority,
        header.first,
        in_order(entries),
        pairs,
        tokens,
        secrets,
        transferable(rejections, entries),
        key,
    )


def header_fields(mesh: MeshState, before: Fields | None = None) -> Fields:
    """Return the fields of the record about the ledger; facts in `before` stay."""
    fields = before or {}
    if mesh.signer is not None and Header.read(fields).authority is None:
        fields = with_authority(fields, mesh.signer) or fields
    if mesh.first is not None:
        fields = with_first(fields, mesh.first) or fields
    return fields


def _proxy_fields(entries: Iterable[LedgerEntry], verdicts: tuple[Verdict, ...]) -> Fields | None:
    fields = with_entries(None, entries)
    return with_rejections(fields, verdicts) or fields


def _token_fields(token: TokenWithUses) -> Fields:
    uses = {key: use_fields(key, at) for key, at in token.uses.items()}
    return {"token": stored_fields(token.stored), "uses": uses}
