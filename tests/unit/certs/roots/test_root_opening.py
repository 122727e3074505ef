"""A state directory whose root is being changed, as the next start finds it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.opening import begun, opened
from certs.proxy import issue_proxy
from certs.roots import kept
from certs.roots.rotation import advanced
from mesh.identity import ProxyName
from mesh.names import TrustDomain

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DOMAIN = TrustDomain("mesh.example")
CART = ProxyName.parse("cart.shop.prod")


@pytest.mark.parametrize("halfway", [False, True])
def test_another_root_signs_and_the_ledger_does_not_know_yet(tmp_path: Path, *, halfway: bool) -> None:
    """The process died before it could note that, or even with the folders on their way: nothing is lost."""
    with opened(tmp_path, DOMAIN, NOW) as found:
        issued = issue_proxy(found.authority, found.ledger, CART, timedelta(days=1), NOW)
        found.first.note(found.ledger)
    rotation = advanced(kept.begin(tmp_path, DOMAIN, NOW), NOW)
    assert rotation is not None
    kept.keep(tmp_path, rotation)
    if halfway:
        (tmp_path / "ca").rename(tmp_path / "ca.halfway")
        (tmp_path / "ca.other").rename(tmp_path / "ca.moving")
        (tmp_path / "ca.halfway").rename(tmp_path / "ca.other")
    assert begun(tmp_path)
    with opened(tmp_path, DOMAIN, NOW) as found:
        assert not found.made
        assert (found.authority.fingerprint, found.authority.other) == (rotation.signer, rotation.other)
        assert found.ledger.authority() == rotation.signer
        again = issue_proxy(found.authority, found.ledger, CART, timedelta(days=1), NOW)
        signers = {each.serial: each.signer for each in found.ledger.entries()}
    assert signers == {issued.serial: rotation.other, again.serial: rotation.signer}
    kept.end(tmp_path)
    with opened(tmp_path, DOMAIN, NOW) as found:
        assert (found.made, found.authority.fingerprint) == (False, rotation.signer)
