"""Tests of an authority during a rotation: at each step, the trusted roots verify all certificates in use."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.authority_files.store import AuthorityFiles
from certs.contract import Names, Usage
from certs.errors import StateError
from certs.issuers.root import VALIDITY
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.pair import Pair, issue_pair
from certs.roots.authority import ChangingAuthority
from certs.roots.rotation import Rotation, aborted, advanced
from meshwright.mesh.names import TrustDomain
from tests.unit.certs.issuers.example_cas import ca

NOW = datetime.now(UTC)
DOMAIN = TrustDomain("mesh.example")
NAMES = Names("service", uris=("spiffe://mesh.example/ns/prod/sa/cart",))


def _issued(authority: ChangingAuthority) -> Pair:
    return issue_pair(authority, Usage.SERVICE, NAMES, timedelta(hours=1), NOW)


def _verified(chain: bytes, bundle: bytes, folder: Path) -> bool:
    """Return whether OpenSSL verifies the chain."""
    (folder / "chain.pem").write_bytes(chain)
    (folder / "roots.pem").write_bytes(bundle)
    command = ["openssl", "verify", "-CAfile", "roots.pem", "chain.pem"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def test_bundles_of_adjacent_steps_verify_each_others_certificates(tmp_path: Path) -> None:
    """A peer may be one step behind. Our verifier and OpenSSL agree, and a restart finds the same state."""
    state = tmp_path / "state"
    authority = ChangingAuthority(AuthorityFiles(state), DOMAIN, NOW)
    old = authority.fingerprint
    seen = [(authority.trust_bundle(), _issued(authority))]
    authority.begin(NOW)
    while True:
        seen.append((authority.trust_bundle(), _issued(authority)))
        for trusted, _ in seen[-2:]:
            for _, shown in seen[-2:]:
                assert is_signed_by_bundle(shown.chain_pem, trusted)
                assert _verified(shown.chain_pem, trusted, tmp_path)
        reopened = ChangingAuthority(AuthorityFiles(state), DOMAIN, NOW)
        assert reopened.rotation == authority.rotation
        assert reopened.trust_bundle() == authority.trust_bundle()
        assert reopened.signing_bundle() == authority.signing_bundle()
        if authority.rotation is None:
            break
        authority.step(advanced(authority.rotation, NOW), NOW)
    assert authority.fingerprint != old
    assert not is_signed_by_bundle(seen[0][1].chain_pem, authority.trust_bundle())
    assert not _verified(seen[0][1].chain_pem, authority.trust_bundle(), tmp_path)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_abort_restores_the_old_root_and_its_bundle(tmp_path: Path, steps: int) -> None:
    """Old certificates are valid during the whole abort, and finally the new root is not trusted."""
    authority = ChangingAuthority(AuthorityFiles(tmp_path), DOMAIN, NOW)
    before, bundle = _issued(authority), authority.trust_bundle()
    rotation = authority.begin(NOW)
    for _ in range(steps):
        rotation = advanced(rotation, NOW) or rotation
        authority.step(rotation, NOW)
    new = authority.trust_bundle()
    back: Rotation | None = aborted(rotation, NOW)
    while back is not None:
        authority.step(back, NOW)
        assert is_signed_by_bundle(before.chain_pem, authority.trust_bundle())
        back = advanced(back, NOW)
    authority.step(None, NOW)
    assert authority.trust_bundle() == bundle != new


def test_intermediate_ca_can_be_rotated_to_a_root_and_back(tmp_path: Path) -> None:
    """The root above the intermediate is trusted, because no peer could verify a chain without it."""
    state, above = tmp_path / "state", ca("above", NOW)
    below = ca("below", NOW, above, path_length=0)
    (state / "ca").mkdir(parents=True)
    for name, content in (("ca.pem", below.pem), ("ca.key", below.key_pem), ("roots.pem", above.pem)):
        (state / "ca" / name).write_bytes(content)
    authority = ChangingAuthority(AuthorityFiles(state), DOMAIN, NOW)
    shown, intermediate = _issued(authority), authority.fingerprint
    rotation = advanced(authority.begin(NOW), NOW)
    assert rotation is not None
    authority.step(rotation, NOW)
    assert TrustBundle.from_pems([authority.trust_bundle()]).holds(TrustBundle.from_pems([above.pem]))
    assert is_signed_by_bundle(shown.chain_pem, authority.trust_bundle())
    assert authority.signer_of(shown.chain_pem) == intermediate == rotation.other
    assert authority.trusted_by(authority.trust_bundle()) == {intermediate, rotation.signer}
    back = advanced(aborted(rotation, NOW), NOW)
    authority.step(back, NOW)
    assert authority.trust_bundle() == above.pem
    assert authority.trusted_by(above.pem) == {intermediate}
    assert authority.confirmed(TrustBundle.from_pems([above.pem]).digest) == {intermediate}


@pytest.mark.parametrize("number", [1, 2])
def test_abort_to_an_expired_root_is_refused(tmp_path: Path, number: int) -> None:
    """The abort is refused before it is stored, also if the root would sign only later.

    Otherwise the rotation could not continue.
    """
    authority = ChangingAuthority(AuthorityFiles(tmp_path), DOMAIN, NOW)
    rotation: Rotation | None = authority.begin(NOW + VALIDITY - timedelta(days=1))
    later = NOW + VALIDITY + timedelta(days=1)
    for _ in range(number):
        rotation = advanced(rotation, later) if rotation is not None else None
        authority.step(rotation, later)
    assert rotation is not None
    signed, back = authority.fingerprint, aborted(rotation, later)
    with pytest.raises(StateError, match="expired at"):
        authority.step(back, later)
    again = ChangingAuthority(AuthorityFiles(tmp_path), DOMAIN, later)
    assert again.fingerprint == signed
    assert again.rotation == authority.rotation


def test_certificate_renewed_by_hand_does_not_stop_a_rotation(tmp_path: Path) -> None:
    """The key is the same, so the step is taken, and the new certificate is used from then on."""
    old = ca("own", NOW, days=5)
    (tmp_path / "ca").mkdir()
    (tmp_path / "ca" / "ca.pem").write_bytes(old.pem)
    (tmp_path / "ca" / "ca.key").write_bytes(old.key_pem)
    authority = ChangingAuthority(AuthorityFiles(tmp_path), DOMAIN, NOW)
    renewed = ca("own", NOW, days=50, key=old.key)
    (tmp_path / "ca" / "ca.pem").write_bytes(renewed.pem)
    rotation = authority.begin(NOW)
    assert (rotation.signer, authority.signing_bundle()) == (authority.fingerprint, renewed.pem)


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("number", range(3))
def test_record_of_a_rotation_damaged_meanwhile_is_written_again(
    tmp_path: Path, number: int, *, is_removed: bool
) -> None:
    """The server knows the rotation, and the next step ends as without the damage, also for a restart."""
    authority = ChangingAuthority(AuthorityFiles(tmp_path), DOMAIN, NOW)
    rotation: Rotation | None = authority.begin(NOW)
    for _ in range(number):
        authority.step(advanced(rotation, NOW) if rotation else None, NOW)
        rotation = authority.rotation
    if is_removed:
        (tmp_path / "rotation.json").unlink()
    else:
        (tmp_path / "rotation.json").write_text("damaged\n")
    assert rotation is not None
    expected = advanced(rotation, NOW)
    authority.step(expected, NOW)
    assert authority.rotation == expected
    reopened = ChangingAuthority(AuthorityFiles(tmp_path), DOMAIN, NOW)
    assert (reopened.rotation, reopened.fingerprint) == (expected, authority.fingerprint)
    assert (tmp_path / "ca.other").exists() == (expected is not None)


def test_rotation_does_not_begin_over_a_damaged_record(tmp_path: Path) -> None:
    """A server that knows of no rotation cannot know the roots in the record."""
    authority = ChangingAuthority(AuthorityFiles(tmp_path), DOMAIN, NOW)
    (tmp_path / "rotation.json").write_text("damaged\n")
    with pytest.raises(StateError, match=r"rotation\.json is damaged: "):
        authority.begin(NOW)
    assert (tmp_path / "rotation.json").read_text() == "damaged\n"
    assert not (tmp_path / "ca.other").exists()


def test_rotation_away_from_an_expired_root_goes_on(tmp_path: Path) -> None:
    """Only a root that must sign later has to be valid."""
    authority = ChangingAuthority(AuthorityFiles(tmp_path), DOMAIN, NOW)
    rotation = advanced(authority.begin(NOW + VALIDITY - timedelta(days=1)), NOW)
    authority.step(rotation, NOW + VALIDITY + timedelta(days=1))
    assert authority.fingerprint == (None if rotation is None else rotation.signer)
