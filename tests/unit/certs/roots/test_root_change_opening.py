"""Tests of opening a state directory during a rotation."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.custody import LEDGER_FILE, begun, opened, rebuilt
from certs.ledger.progress import Progress, progress
from certs.peer import read_peer
from certs.proxy import issue_proxy
from certs.roots.rotation import advanced
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.unit.certs.authority_files.steps import begin, step

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DOMAIN = TrustDomain("mesh.example")
CART = ProxyName.parse("cart.shop.prod")


@pytest.mark.parametrize("halfway", [False, True])
def test_ledger_learns_the_new_signer_after_a_crash_during_a_step(tmp_path: Path, *, halfway: bool) -> None:
    """The process died before it recorded the signer, or while it swapped the folders.

    No certificate is lost.
    """
    with opened(tmp_path, DOMAIN, NOW) as authority:
        issued = issue_proxy(authority.authority, authority.ledger, CART, timedelta(days=1), NOW)
        authority.first.note(authority.ledger)
    rotation = advanced(begin(tmp_path, DOMAIN, NOW), NOW)
    assert rotation is not None
    step(tmp_path, rotation)
    if halfway:
        (tmp_path / "ca").rename(tmp_path / "ca.halfway")
        (tmp_path / "ca.other").rename(tmp_path / "ca.moving")
        (tmp_path / "ca.halfway").rename(tmp_path / "ca.other")
    assert begun(tmp_path)
    with opened(tmp_path, DOMAIN, NOW) as authority:
        assert not authority.made
        assert (authority.authority.fingerprint, authority.authority.other) == (
            rotation.signer,
            rotation.other,
        )
        assert authority.ledger.authority() == rotation.signer
        again = issue_proxy(authority.authority, authority.ledger, CART, timedelta(days=1), NOW)
        signers = {entry.serial: entry.signer for entry in authority.ledger.entries()}
    assert signers == {issued.serial: rotation.other, again.serial: rotation.signer}
    step(tmp_path, None)
    with opened(tmp_path, DOMAIN, NOW) as authority:
        assert (authority.made, authority.authority.fingerprint) == (False, rotation.signer)


@pytest.mark.parametrize("steps", [0, 1])
def test_certificate_confirmed_during_a_rotation_keeps_its_signer(tmp_path: Path, steps: int) -> None:
    """The rebuilt ledger knows which of the two roots signed.

    The certificate is replaced before that root is removed.
    """
    with opened(tmp_path, DOMAIN, NOW) as authority:
        issued = issue_proxy(authority.authority, authority.ledger, CART, timedelta(days=1), NOW)
        authority.first.note(authority.ledger)
    serial, pem = issued.serial, issued.chain_pem
    rotation = begin(tmp_path, DOMAIN, NOW)
    old = rotation.signer
    for _ in range(steps):
        rotation = advanced(rotation, NOW) or rotation
        step(tmp_path, rotation)
    (tmp_path / LEDGER_FILE).unlink()
    with opened(tmp_path, DOMAIN, NOW, rebuild=serial) as authority:
        assert authority.rebuilding is not None
        authority.rebuilding.show(read_peer(pem), pem, "192.0.2.1:9", NOW)
        authority.rebuilding.confirm(serial)
    assert rebuilt(tmp_path) == 1
    with opened(tmp_path, DOMAIN, NOW) as authority:
        (entry,) = authority.ledger.entries()
    assert entry.signer == old
    assert progress([entry]) is Progress.READY, "the others go on sending it traffic"
