"""Test of the evidence about a proxy during a rotation, from its ledger entries and acknowledgements."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from certs.authority_files.store import AuthorityFiles
from certs.ledger.entry import LedgerEntry
from certs.roots.authority import ChangingAuthority
from certs.roots.evidence import Evidence
from certs.roots.proxy_evidence import evidence
from certs.roots.rotation import Rotation, advanced
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain

NOW: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
CART: Final = ProxyName.parse("cart.shop.prod")


@pytest.fixture
def authority(tmp_path: Path) -> ChangingAuthority:
    """Return an authority whose new root signs."""
    made = ChangingAuthority(AuthorityFiles(tmp_path), TrustDomain("cluster.local"), NOW)
    made.step(advanced(made.begin(NOW), NOW), NOW)
    return made


# For each certificate: minute of issue, whether the proxy presented it, whether the new root signed it.
ENTRIES = [
    ([(0, True, False)], {False}),
    ([(0, True, False), (1, True, True)], {True}),
    # The proxy has the newer certificate on its disk, and may present it at any moment.
    ([(0, True, True), (1, False, False)], {True, False}),
    ([(0, True, False), (1, False, True)], {True, False}),
    ([(0, True, True), (1, True, False)], {False}),
    ([(0, False, False), (1, True, True)], {True}),
    ([(0, True, True), (1, True, False), (2, True, True)], {True}),
    ([(0, True, True), (1, False, True)], {True}),
    # Within one second.
    ([(0, True, False), (0, True, True)], {True}),
    # It never connected, so only the last issued certificate can be in use.
    ([(0, False, False), (1, False, True)], {True}),
    ([(0, False, True), (1, False, False)], {False}),
]


@pytest.mark.parametrize(("entries", "shown"), ENTRIES)
def test_evidence_has_the_signers_of_certificates_that_a_proxy_may_present(
    authority: ChangingAuthority, entries: list[tuple[int, bool, bool]], shown: set[bool]
) -> None:
    """These are the certificate that it presented last, and all that were issued to it later."""
    rotation = authority.rotation
    assert rotation is not None
    known = _known(authority, rotation, entries)
    assert {fingerprint == rotation.signer for fingerprint in known.shown} == shown


def _known(
    authority: ChangingAuthority, rotation: Rotation, entries: list[tuple[int, bool, bool]]
) -> Evidence:
    made = []
    for number, (minutes, came, new) in enumerate(entries):
        at = NOW + timedelta(minutes=minutes)
        made.append(
            LedgerEntry(
                f"{number:02x}", str(CART), CART.uuid, at, at + timedelta(days=1),
                claimed_at=at if came else None,
                signer=rotation.signer if new else rotation.other,
            )
        )  # fmt: skip
    (known,) = evidence(rotation, made, lambda _: None, authority, NOW + timedelta(hours=1))
    return known
