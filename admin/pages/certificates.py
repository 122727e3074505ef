"""`/debug/certs`: what certificates say, never their keys."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from admin.pages.jsonable import Document, jsonable
from admin.reading import CertificateReading, ViewReading
from certs.ledger.entry import LedgerEntry
from certs.material import ServiceCertificate


class CertificatePage(CertificateReading, ViewReading, Protocol):
    """What the page on certificates reads."""


def certificates(reading: CertificatePage, now: datetime) -> Document:
    """Return service certificates and the ledger of proxy certificates: what they say, never their keys."""
    view = reading.view()
    return {
        "service_certificates": [
            service_certificate(each, each.identity.spiffe_id(view.settings.trust_domain), now)
            for each in reading.certificates().values()
            if view is not None
        ],
        "proxy_certificates": [ledger_entry(entry, now) for entry in reading.ledger()],
    }


def offline_certificates(entries: Iterable[LedgerEntry], now: datetime) -> Document:
    """Return the same without a server: nobody knows service certificates then, which is not that none are.

    `service_certificates` is null.
    """
    return {
        "service_certificates": None,
        "proxy_certificates": [ledger_entry(entry, now) for entry in entries],
    }


def service_certificate(certificate: ServiceCertificate, uri: str, now: datetime) -> Document:
    """Return what one service certificate says."""
    return {
        "identity": str(certificate.identity),
        "serial": certificate.serial,
        "uri": uri,
        "dns_names": list(certificate.dns_names),
        "not_before": jsonable(certificate.not_before),
        "not_after": jsonable(certificate.not_after),
        "seconds_left": int((certificate.not_after - now).total_seconds()),
    }


def ledger_entry(entry: LedgerEntry, now: datetime) -> Document:
    """Return what the ledger says of one proxy certificate."""
    return {
        "cn": entry.common_name,
        "serial": entry.serial,
        "state": entry.state.value,
        "issued_at": jsonable(entry.issued_at),
        "not_after": jsonable(entry.not_after),
        "claimed_at": jsonable(entry.claimed_at),
        "revoked_at": jsonable(entry.revoked_at),
        "expired": now > entry.not_after,
    }
