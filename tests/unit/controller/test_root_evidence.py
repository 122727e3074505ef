"""What is known of a proxy while the root changes, from all who have a word in it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.ledger.entry import LedgerEntry
from certs.roots.authority import ChangingAuthority
from certs.roots.rotation import Rotation
from controller.root_evidence import Said, evidence
from mesh.identity import ProxyName
from mesh.names import TrustDomain
from sidecars.contract.contexts import Taken
from xds.cache import NodeKey

NOW = datetime.now(UTC)
CART = ProxyName.parse("cart.shop.prod")
HERE = frozenset({CART})
NODE = NodeKey(str(CART))


@pytest.fixture
def authority(tmp_path: Path) -> ChangingAuthority:
    """Return one whose root has begun to change."""
    made = ChangingAuthority.open(tmp_path, TrustDomain("mesh.example"), NOW)
    made.begin(NOW)
    return made


def under_way(authority: ChangingAuthority) -> Rotation:
    """Return the change."""
    assert authority.rotation is not None
    return authority.rotation


def issued(authority: ChangingAuthority, at: datetime) -> LedgerEntry:
    """Return the proxy's certificate, of the root that signs."""
    return LedgerEntry.issued("0a", CART, at, NOW + timedelta(days=1), signer=authority.fingerprint)


def test_what_an_agent_confirms_counts_more_than_when_it_was_issued(authority: ChangingAuthority) -> None:
    """A clock may have jumped between; who says nothing has got both with its certificate."""
    rotation = under_way(authority)
    later = [issued(authority, NOW + timedelta(minutes=1))]
    (silent,) = evidence(rotation, later, Said((), HERE, {}), authority, NOW)
    assert silent.channel == frozenset(rotation.trusted)
    confirmed = {CART: frozenset({rotation.signer})}
    (said,) = evidence(rotation, later, Said((), HERE, confirmed), authority, NOW)
    assert said.channel == confirmed[CART]


def test_service_certificates_of_another_issuer(authority: ChangingAuthority) -> None:
    """There is nothing that proxies would have to take; of ours there is, whoever has said nothing yet."""
    rotation, entries = under_way(authority), [issued(authority, NOW)]
    (other,) = evidence(rotation, entries, Said(None, HERE, {}), authority, NOW)
    assert (other.mesh, other.service) == (frozenset(rotation.trusted), rotation.signer)
    (ours,) = evidence(rotation, entries, Said((), HERE, {}), authority, NOW)
    assert (ours.mesh, ours.service) == (None, None)


def test_what_a_proxy_has_taken(authority: ChangingAuthority) -> None:
    """The roots in its bundle are those of this change, and no others."""
    rotation, entries = under_way(authority), [issued(authority, NOW)]
    for bundle, roots in (
        (authority.trust_bundle(), rotation.trusted),
        (authority.signing_bundle(), (rotation.signer,)),
        (b"", ()),
    ):
        said = Said([Taken(NODE, bundle, b"")], HERE, {})
        (found,) = evidence(rotation, entries, said, authority, NOW)
        assert (found.mesh, found.service) == (frozenset(roots), rotation.other)
