"""An authority whose root changes: at each step who trusts as told verifies whatever is in force."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.issuers.contract import Names, Usage
from certs.leaf import stands_below
from certs.pair import Pair, issue_pair
from certs.roots.authority import ChangingAuthority
from certs.roots.rotation import Rotation, aborted, advanced
from mesh.names import TrustDomain

NOW = datetime.now(UTC)
DOMAIN = TrustDomain("mesh.example")
NAMES = Names("service", uris=("spiffe://mesh.example/ns/prod/sa/cart",))


def _issued(authority: ChangingAuthority) -> Pair:
    return issue_pair(authority, Usage.SERVICE, NAMES, timedelta(hours=1), NOW)


def _verified(chain: bytes, bundle: bytes, folder: Path) -> bool:
    """Say what OpenSSL says."""
    (folder / "chain.pem").write_bytes(chain)
    (folder / "roots.pem").write_bytes(bundle)
    command = ["openssl", "verify", "-CAfile", "roots.pem", "chain.pem"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def test_whoever_keeps_up_verifies_everything(tmp_path: Path) -> None:
    """Certificates of this step and the one before stand below the roots of this step and the one before."""
    state = tmp_path / "state"
    authority = ChangingAuthority.open(state, DOMAIN, NOW)
    old = authority.fingerprint
    seen = [(authority.trust_bundle(), _issued(authority))]
    authority.begin(NOW)
    while True:
        seen.append((authority.trust_bundle(), _issued(authority)))
        for trusted, _ in seen[-2:]:
            for _, shown in seen[-2:]:
                assert stands_below(shown.chain_pem, trusted)
                assert _verified(shown.chain_pem, trusted, tmp_path)
        reopened = ChangingAuthority.open(state, DOMAIN, NOW)
        assert reopened.rotation == authority.rotation
        assert reopened.trust_bundle() == authority.trust_bundle()
        assert reopened.signing_bundle() == authority.signing_bundle()
        if authority.rotation is None:
            break
        authority.step(advanced(authority.rotation, NOW), NOW)
    assert authority.fingerprint != old
    assert not stands_below(seen[0][1].chain_pem, authority.trust_bundle())
    assert not _verified(seen[0][1].chain_pem, authority.trust_bundle(), tmp_path)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_an_abort_leaves_the_old_root(tmp_path: Path, steps: int) -> None:
    """Its certificates are good all the time, and nothing of the new one is trusted in the end."""
    authority = ChangingAuthority.open(tmp_path, DOMAIN, NOW)
    before, bundle = _issued(authority), authority.trust_bundle()
    rotation = authority.begin(NOW)
    for _ in range(steps):
        rotation = advanced(rotation, NOW) or rotation
        authority.step(rotation, NOW)
    new = authority.trust_bundle()
    back: Rotation | None = aborted(rotation, NOW)
    while back is not None:
        authority.step(back, NOW)
        assert stands_below(before.chain_pem, authority.trust_bundle())
        back = advanced(back, NOW)
    authority.step(None, NOW)
    assert authority.trust_bundle() == bundle != new
