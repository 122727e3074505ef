"""Evidence about proxies during a change of the root: from the ledger, their streams and their agents."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from certs.ledger.entry import LedgerEntry
from certs.roots.authority import ChangingAuthority
from certs.roots.evidence import Evidence, ServerEvidence
from certs.roots.proxy_facts import NO_FACTS, ProxyFacts
from certs.roots.rotation import Fingerprint, Rotation
from meshwright.mesh.identity import ProxyName, ProxyNameError


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
    is the evidence about the server itself. `confirmed_at` has the times of the confirmations.
    """

    taken: Iterable[ProxySecrets] | None
    connected: frozenset[ProxyName]
    confirmed: Mapping[ProxyName, frozenset[Fingerprint]]
    ours: ServerEvidence
    confirmed_at: Mapping[ProxyName, datetime] = field(default_factory=dict)


def evidence(
    rotation: Rotation,
    entries: Iterable[LedgerEntry],
    facts_of: Callable[[ProxyName], ProxyFacts | None],
    authority: ChangingAuthority,
    now: datetime,
    *,
    elsewhere: bool = False,
) -> tuple[Evidence, ...]:
    """Return the evidence about each proxy with a certificate in force below one of the two roots.

    `facts_of` returns what the servers know about a proxy. `elsewhere` is True if another issuer signs
    service certificates.
    """
    known: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        signed = replace(entry, signer=entry.signer or rotation.origin)  # older entries have none
        if entry.in_force(now) and signed.signer in (rotation.signer, rotation.other):
            known.setdefault(entry.common_name, []).append(signed)
    return tuple(
        _evidence(name, known[str(name)], facts_of(name) or NO_FACTS, authority, rotation, now, elsewhere)
        for name in map(ProxyName.parse, sorted(known))
    )


def _evidence(
    proxy: ProxyName,
    entries: list[LedgerEntry],
    facts: ProxyFacts,
    authority: ChangingAuthority,
    rotation: Rotation,
    now: datetime,
    elsewhere: bool,
) -> Evidence:
    claimed = [entry for entry in entries if entry.claimed_at is not None]
    return Evidence(
        proxy,
        frozenset(rotation.trusted) if elsewhere else facts.mesh,
        _channel(entries, facts, authority, rotation),
        _shown(entries, rotation),
        rotation.signer if elsewhere else facts.service,
        now if facts.connected else max(filter(None, (e.last_seen for e in claimed)), default=None),
        max(entry.issued_at for entry in entries),
    )


def _channel(
    entries: list[LedgerEntry], facts: ProxyFacts, authority: ChangingAuthority, rotation: Rotation
) -> frozenset[Fingerprint] | None:
    """Return the roots by which a proxy verifies the control plane; None if unknown.

    They are those that its agent has confirmed, or else those issued with its certificates.
    """
    given = [_given(entry, authority, rotation) for entry in entries]
    if facts.channel is None:
        known = [roots for roots in given if roots is not None]
        return frozenset.intersection(*known) if len(known) == len(entries) else None
    # A server that was behind may have issued a certificate with former roots after the confirmation.
    later = [
        roots
        for entry, roots in zip(entries, given, strict=True)
        if entry.roots and roots is not None and _is_after(entry.issued_at, facts.confirmed_at)
    ]
    return frozenset.intersection(facts.channel, *later)


def _given(
    entry: LedgerEntry, authority: ChangingAuthority, rotation: Rotation
) -> frozenset[Fingerprint] | None:
    """Return the roots that were issued together with a certificate; None if unknown."""
    if entry.roots:
        return authority.given(entry.roots)
    # The only server issues the roots that are trusted since the stage began.
    return frozenset(rotation.trusted) if entry.issued_at > rotation.since else None


def _is_after(issued_at: datetime, confirmed_at: datetime | None) -> bool:
    # Whole seconds: in the same second the order is unknown.
    return confirmed_at is None or issued_at >= confirmed_at.replace(microsecond=0)


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


def facts(
    rotation: Rotation, acknowledgements: RootAcknowledgements, authority: ChangingAuthority
) -> dict[ProxyName, ProxyFacts]:
    """Return what this server knows about each proxy with a stream or a confirmation here."""
    taken: dict[ProxyName, list[ProxySecrets]] = {}
    for proxy_secrets in acknowledgements.taken or ():
        with suppress(ProxyNameError):  # a driver's own client
            taken.setdefault(ProxyName.parse(proxy_secrets.node), []).append(proxy_secrets)
    roots, signer = functools.cache(authority.trusted_by), functools.cache(authority.signer_of)
    names = {*taken, *acknowledgements.connected, *acknowledgements.confirmed}
    return {
        name: ProxyFacts(
            _mesh(taken.get(name, ()), roots),
            _service(taken.get(name, ()), rotation, signer),
            acknowledgements.confirmed.get(name),
            acknowledgements.confirmed_at.get(name),
            name in acknowledgements.connected,
        )
        for name in names
    }


def _mesh(
    taken: Sequence[ProxySecrets], roots: Callable[[bytes], frozenset[Fingerprint]]
) -> frozenset[Fingerprint] | None:
    if not taken:
        return None
    return frozenset.intersection(*(roots(proxy_secrets.trust_bundle) for proxy_secrets in taken))


def _service(
    taken: Sequence[ProxySecrets], rotation: Rotation, signer: Callable[[bytes], str]
) -> Fingerprint | None:
    """Return the signer of the certificate that a proxy shows to peers.

    With several streams this is the other root unless all certificates are of the signer.
    """
    if not taken:
        return None
    shown = {signer(proxy_secrets.chain) if proxy_secrets.chain else "" for proxy_secrets in taken}
    return rotation.signer if shown == {rotation.signer} else rotation.other
