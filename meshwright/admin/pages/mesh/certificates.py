"""`/debug/certs`: content of certificates, never their keys."""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from certs.keys.material import ServiceCertificate
from certs.ledger.entry import LedgerEntry
from certs.roots.succeeding_authority import AuthorityStatus
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.readers import CertificateReading, ProxyReading
from meshwright.delivery.proxies.held_certificates import HeldCertificate
from meshwright.delivery.proxies.participants import Participation, of_statuses
from meshwright.sidecars.addresses import plain_address


class CertificatePage(CertificateReading, ProxyReading, Protocol):
    """Access to the server's state, as the page Certificates needs it."""


async def certificates(reading: CertificatePage, now: datetime) -> Document:
    """Return service certificates, the ledger of proxy certificates, and the participation of each proxy.

    The content of certificates is shown, never their keys.
    """
    view, statuses = reading.view(), reading.proxies()
    served = () if view is None else tuple(reading.certificates().values())

    def made() -> Document:
        services: list[Json] = [
            service_certificate(item, item.identity.spiffe_id(view.settings.trust_domain), now)
            for item in served
            if view is not None
        ]
        entries = reading.ledger()
        proxies: list[Json] = [
            participation(status, reading.held_certificate(status.name))
            for status in of_statuses(entries, statuses, now)
        ]
        return offline_certificates(entries, now, reading.authority()) | {
            "service_certificates": services,
            "participants": proxies,
        }

    # In a thread, because the ledger is a file and may be long.
    return await asyncio.to_thread(made)


def offline_certificates(
    entries: Iterable[LedgerEntry], now: datetime, authority: AuthorityStatus
) -> Document:
    """Return the document without a server, for example for `meshwright certs list` on a stopped server.

    `service_certificates` and `participants` are null, because only a running server knows them. Null differs
    from an empty list, which means that none exist.
    """
    return {
        "service_certificates": None,
        "participants": None,
        "proxy_certificates": [ledger_entry(entry, now) for entry in entries],
        "authority": authority_document(authority),
    }


def authority_document(authority_status: AuthorityStatus) -> Document:
    """Return the CA that signs proxy certificates, its place, and former CAs that are still trusted."""
    return {
        "kind": authority_status.kind.value,
        "place": authority_status.place,
        "signer": authority_status.signer,
        "not_after": jsonable(authority_status.not_after),
        "formers": [
            {"roots": list(former_issuer.roots.fingerprints), "until": jsonable(former_issuer.until)}
            for former_issuer in authority_status.formers
        ],
    }


def service_certificate(certificate: ServiceCertificate, uri: str, now: datetime) -> Document:
    """Return the content of one service certificate."""
    return {
        "identity": str(certificate.identity),
        "serial": certificate.serial,
        "uri": uri,
        "dns_names": list(certificate.dns_names),
        "not_before": jsonable(certificate.not_before),
        "not_after": jsonable(certificate.not_after),
        "seconds_left": int((certificate.not_after - now).total_seconds()),
    }


def participation(result: Participation, certificate: HeldCertificate | None) -> Document:
    """Return whether a proxy takes part in the mesh, missing requirements, and its service certificate."""
    return {
        "cn": str(result.name),
        "takes_part": result.takes_part,
        "lacks": [lack.value for lack in result.lacks],
        "serial": None if result.entry is None else result.entry.serial,
        "service_certificate": None
        if certificate is None
        else {"serial": certificate.serial, "not_after": jsonable(certificate.not_after)},
    }


def ledger_entry(entry: LedgerEntry, now: datetime) -> Document:
    """Return the ledger's record of one proxy certificate."""
    return {
        "cn": entry.common_name,
        "serial": entry.serial,
        "state": entry.state.value,
        "issued_at": jsonable(entry.issued_at),
        "not_after": jsonable(entry.not_after),
        "claim_by": jsonable(entry.claim_by),
        "claimed_at": jsonable(entry.claimed_at),
        "claimed_from": plain_address(entry.claimed_from) or None,
        "first_ready_at": jsonable(entry.admitted_at),
        "last_seen": jsonable(entry.last_seen),
        "revoked_at": jsonable(entry.revoked_at),
        "revoked_why": entry.revoked_why or None,
        "term_seconds": None if entry.term is None else int(entry.term.total_seconds()),
        "joined_by": entry.joined_by or None,
        "signer": entry.signer or None,
        "expired": now > entry.not_after,
        "in_force": entry.in_force(now),
    }
