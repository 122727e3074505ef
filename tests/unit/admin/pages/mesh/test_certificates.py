"""Tests of the page of certificates, by whole values."""

from datetime import timedelta
from typing import Any

from meshwright.admin.pages.mesh.certificates import certificates


async def test_certificates_are_shown_with_their_fields(reading: Any, now: Any) -> None:
    """Service certificates have their URI, and the ledger, the participants and the CA are shown."""
    assert await certificates(reading, now + timedelta(days=2)) == {
        "service_certificates": [
            {
                "identity": "shop/store",
                "serial": "abc",
                "uri": "spiffe://cluster.local/ns/shop/sa/store",
                "dns_names": ["store.shop.svc.cluster.local"],
                "not_before": "2026-01-02T02:04:05.000Z",
                "not_after": "2026-01-03T02:04:05.000Z",
                "seconds_left": 23 * 3600 - 2 * 86400,
            }
        ],
        "participants": [
            {
                "cn": "uuid-1.store.shop",
                "takes_part": False,
                "lacks": ["certificate-expired"],
                "serial": "ab",
                "service_certificate": None,
            }
        ],
        "proxy_certificates": [
            {
                "cn": "uuid-1.store.shop",
                "serial": "ab",
                "state": "claimed",
                "issued_at": "2026-01-02T03:04:05.000Z",
                "not_after": "2026-01-03T03:04:05.000Z",
                "claim_by": None,
                "claimed_at": "2026-01-02T03:04:05.000Z",
                "claimed_from": None,
                "first_ready_at": None,
                "last_seen": "2026-01-02T03:04:05.000Z",
                "revoked_at": None,
                "revoked_why": None,
                "term_seconds": None,
                "joined_by": None,
                "signer": None,
                "expired": True,
                "in_force": False,
            }
        ],
        "authority": {
            "kind": "built-in",
            "place": "/state/ca",
            "signer": "ab12",
            "not_after": "2036-01-01T00:00:00.000Z",
            "formers": [],
        },
    }
