"""Evidence about proxies during a change of the root: from the ledger, their streams and their agents."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from certs.ledger.entry import LedgerEntry
from certs.roots.authority import ChangingAuthority
from certs.roots.evidence import Evidence, ServerEvidence
from certs.roots.rotation import Fingerprint, Rotation
from meshwright.mesh.identity import ProxyName


class ProxySecrets(Protocol):
    """Secrets acknowledged by a connected proxy, as PEM; empty without an ACK.

    `trust_bundle` are the proxy's roots for verifying peers, `chain` is the certificate shown to peers with
    its intermediates.
    """

    @property
    def node(self) -> str:
        """Return the proxy's name."""

    @property
    def trust_bundle(self) -> bytes:
        """Return the roots acknowledged by the proxy for verifying peers, as PEM; empty without an ACK."""

    @property
    def chain(self) -> bytes:
        """Return the acknowledged certificate chain shown to peers, as PEM; empty without an ACK."""


@dataclass(frozen=True, slots=True)
class RootAcknowledgements:
    """Acknowledged secrets of proxies, the connected proxies, and the roots confirmed by agents.

    `taken` is None if another issuer signs service certificates, so this root does not concern them. `ours`
    is the evidence about the server itself.
    """

    taken: Iterable[ProxySecrets] | None
    connected: frozenset[ProxyName]
    confirmed: Mapping[ProxyName, frozenset[Fingerprint]]
    ours: ServerEvidence


def evidence(
    rotation: Rotation,
    entries: Iterable[LedgerEntry],
    acknowledgements: RootAcknowledgements,
    authority: ChangingAuthority,
    now: datetime,
) -> tuple[Evidence, ...]:
    """Return the evidence about each proxy with a certificate in force below one of the two roots."""
    known: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        signed = replace(entry, signer=entry.signer or rotation.origin)  # older entries have none
        if entry.in_force(now) and signed.signer in (rotation.signer, rotation.other):
            known.setdefault(entry.common_name, []).append(signed)
    taken: dict[str, list[ProxySecrets]] = {}
    for proxy_secrets in acknowledgements.taken or ():
        taken.setdefault(proxy_secrets.node, []).append(proxy_secrets)
    roots = functools.cache(authority.trusted_by)
    signer = functools.cache(authority.signer_of)
    return tuple(
        _evidence(
            ProxyName.parse(name),
            known[name],
            taken.get(name, []),
            acknowledgements,
            rotation,
            now,
            roots,
            signer,
        )
        for name in sorted(known)
    )


def _evidence(
    proxy: ProxyName,
    entries: list[LedgerEntry],
    taken: list[ProxySecrets],
    acknowledgements: RootAcknowledgements,
    rotation: Rotation,
    now: datetime,
    roots: Callable[[bytes], frozenset[Fingerprint]],
    signer: Callable[[bytes], str],
) -> Evidence:
    claimed = [entry for entry in entries if entry.claimed_at is not None]
    # Credentials issued since the stage began contain the roots that are trusted since then.
    given = all(entry.issued_at > rotation.since for entry in entries)
    mesh = (
        frozenset.intersection(*(roots(proxy_secrets.trust_bundle) for proxy_secrets in taken))
        if taken
        else None
    )
    return Evidence(
        proxy,
        frozenset(rotation.trusted) if acknowledgements.taken is None else mesh,
        acknowledgements.confirmed.get(proxy, frozenset(rotation.trusted) if given else None),
        _shown(entries, rotation),
        rotation.signer if acknowledgements.taken is None else _service(taken, rotation, signer),
        now
        if proxy in acknowledgements.connected
        else max(filter(None, (e.last_seen for e in claimed)), default=None),
        max(entry.issued_at for entry in entries),
    )


def _shown(entries: list[LedgerEntry], rotation: Rotation) -> frozenset[Fingerprint]:
    """Return the signers of certificates that a proxy may show: the last one in use, and any issued since.

    A newer certificate may be on the proxy's disk before its use. Before the first connection the newest
    certificate counts. Times are whole seconds; of two certificates in one second the one of the current
    signer wins.
    """

    def order(entry: LedgerEntry) -> tuple[datetime, datetime, bool]:
        return entry.issued_at, entry.claimed_at or entry.issued_at, entry.signer == rotation.signer

    newest = max(
        (ledger_entry for ledger_entry in entries if ledger_entry.claimed_at is not None),
        key=order,
        default=None,
    )
    if newest is None:
        return frozenset({Fingerprint(max(entries, key=order).signer)})
    since = (e.signer for e in entries if e.claimed_at is None and e.issued_at >= newest.issued_at)
    return frozenset(map(Fingerprint, (newest.signer, *since)))


def _service(
    taken: list[ProxySecrets], rotation: Rotation, signer: Callable[[bytes], str]
) -> Fingerprint | None:
    """Return the signer of the certificate that a proxy shows to peers.

    With several streams this is the other root unless all certificates are of the signer.
    """
    if not taken:
        return None
    shown = {signer(proxy_secrets.chain) if proxy_secrets.chain else "" for proxy_secrets in taken}
    return rotation.signer if shown == {rotation.signer} else rotation.other
