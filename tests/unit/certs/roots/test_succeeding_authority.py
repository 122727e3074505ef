"""Tests of an external CA in files for the control plane's own channel: opening, replacement, return."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.contract import IssuerKind, Names, Usage
from certs.custody import LEDGER_FILE, AuthorityWithLedger, Custody, opened
from certs.errors import StateError
from certs.issuers.file_authority import WatchedFiles
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.pair import issue_pair
from certs.ledger.entry import LedgerEntry
from certs.proxy import issue_proxy
from certs.roots.authority import ChangingAuthority
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.unit.certs.issuers.example_cas import Ca, ca

DOMAIN = TrustDomain("mesh.example")
DAY = timedelta(days=1)
NAME = ProxyName.parse("one.store.shop")


class Scene:
    """A state directory, and a folder for CAs of another owner."""

    def __init__(self, folder: Path, now: datetime) -> None:
        self.state, self.files, self.now = folder / "state", folder / "files", now

    def put(self, name: str, *, days: int = 365) -> Ca:
        """Write a new root into the folder."""
        made = ca(name, self.now, days=days)
        made.put(self.files, made)
        return made

    @contextmanager
    def open(self, *, own: bool = False) -> Iterator[AuthorityWithLedger]:
        """Open the directory, as a server does."""
        custody = Custody(authority=None if own else WatchedFiles.within(self.files, "authority_roots"))
        with opened(self.state, DOMAIN, self.now, custody=custody) as authority:
            yield authority

    def issued(self, authority: AuthorityWithLedger, days: int = 30) -> bytes:
        """Issue a certificate to a proxy; return its chain."""
        return issue_proxy(authority.authority, authority.ledger, NAME, days * DAY, self.now).chain_pem


@pytest.fixture
def scene(tmp_path: Path, now: datetime) -> Scene:
    """Return an empty state directory."""
    return Scene(tmp_path, now)


def trusted(authority: AuthorityWithLedger, *roots: Ca) -> bool:
    """Return whether exactly these roots are trusted."""
    return TrustBundle.from_pems([authority.authority.trust_bundle()]) == TrustBundle.from_pems(
        root.pem for root in roots
    )


def test_external_ca_signs_and_no_key_is_stored_in_the_state_directory(scene: Scene) -> None:
    """Certificates of proxies end at the latest with the CA's own."""
    root = scene.put("root", days=20)
    with scene.open() as authority:
        chain = scene.issued(authority)
        assert is_signed_by_bundle(chain, root.pem)
        assert trusted(authority, root)
        assert authority.authority.not_after == root.certificate.not_valid_after_utc
        assert authority.ledger.authority() == authority.authority.fingerprint
        (entry,) = authority.ledger.entries()
        assert (entry.signer, entry.not_after) == (
            authority.authority.fingerprint,
            authority.authority.not_after,
        )
        assert (authority.opened_authority.kind, authority.opened_authority.place) == (
            IssuerKind.FILES,
            str(scene.files),
        )
        assert authority.opened_authority.changing is None
        assert f"rotate the CA in {scene.files}" in authority.opened_authority.why_not
    assert not (scene.state / "ca").exists()
    files = [path for path in scene.state.rglob("*") if path.is_file()]
    assert not [file for file in files if b"PRIVATE KEY" in file.read_bytes()]


def test_external_ca_can_be_replaced_while_the_server_runs(scene: Scene) -> None:
    """The former CA is trusted until its last certificate has ended.

    Certificates are replaced when they are due.
    """
    first = scene.put("first")
    with scene.open() as authority:
        pairs, old = PairFiles(scene.state), scene.issued(authority, days=30)
        shown = ads_server_certificate(authority.authority, pairs, scene.now)
        second = scene.put("second")
        assert authority.opened_authority.tend is not None
        authority.opened_authority.tend(scene.now)
        assert trusted(authority, first, second)
        new = scene.issued(authority, days=2)
        assert is_signed_by_bundle(new, second.pem)
        assert authority.authority.trusts(authority.ledger.entries()[0].signer)
        assert ads_server_certificate(authority.authority, pairs, scene.now) == shown
        assert is_signed_by_bundle(old, authority.authority.trust_bundle())
        # The server's own certificate is valid for 90 days, longer than any proxy's.
        for days, roots in ((31, (first, second)), (91, (second,))):
            authority.opened_authority.tend(scene.now + days * DAY)
            assert trusted(authority, *roots), days


def test_patient_renewal_waits_until_agents_had_time_to_learn_the_new_root(scene: Scene) -> None:
    """Agents that do not trust the new root yet could not connect to learn about it."""
    scene.put("first")
    with scene.open() as authority:
        pairs = PairFiles(scene.state)
        shown = ads_server_certificate(authority.authority, pairs, scene.now)
        scene.now += 60 * DAY
        second = scene.put("second")
        assert authority.opened_authority.tend is not None
        authority.opened_authority.tend(scene.now)
        assert authority.opened_authority.succeeding is not None
        assert authority.opened_authority.succeeding.settled() > scene.now + timedelta(minutes=30)
        patient = ads_server_certificate(authority.authority, pairs, scene.now, patient=True)
        assert patient == shown
        assert is_signed_by_bundle(
            ads_server_certificate(authority.authority, pairs, scene.now).chain_pem, second.pem
        )


def test_restart_knows_the_former_ca(scene: Scene) -> None:
    """This is true for a replacement before the stop and during it. The ledger still belongs to the mesh."""
    first = scene.put("first")
    with scene.open() as authority:
        scene.issued(authority)
    second = scene.put("second")
    for _ in range(2):
        with scene.open() as authority:
            assert trusted(authority, first, second)
            assert authority.ledger.authority() == authority.authority.fingerprint
            assert authority.ledger.entries()
    scene.now += 31 * DAY
    with scene.open() as authority:
        assert trusted(authority, second)


def test_renewed_intermediate_of_the_same_root_has_no_former(scene: Scene) -> None:
    """The trusted root is the same, so clients need no new bundle, and old certificates remain valid."""
    root = ca("root", scene.now)
    for days in (30, 60):
        ca(f"lower {days}", scene.now, root, days=days).put(scene.files, root)
        with scene.open() as authority:
            chain = scene.issued(authority, days=10)
            assert chain.count(b"BEGIN CERTIFICATE") == 2
            assert trusted(authority, root)
            assert not authority.opened_authority.standing().formers
            assert all(authority.authority.trusts(entry.signer) for entry in authority.ledger.entries())
    assert len({entry.signer for entry in _entries(scene)}) == 2


def _entries(scene: Scene) -> list[LedgerEntry]:
    with scene.open() as authority:
        return list(authority.ledger.entries())


def test_change_from_the_built_in_ca_to_files_and_back_keeps_both_trusted(scene: Scene) -> None:
    """Each CA is trusted until its last certificate has ended. No rotation is possible until then."""
    with scene.open(own=True) as authority:
        own = authority.authority.fingerprint
        scene.issued(authority, days=30)
        built_in = authority.authority.trust_bundle()
    root = scene.put("root")
    with scene.open() as authority:
        assert is_signed_by_bundle(scene.issued(authority, days=40), root.pem)
        both = TrustBundle.from_pems([built_in, root.pem])
        assert TrustBundle.from_pems([authority.authority.trust_bundle()]) == both
        assert authority.authority.trusts(own)
    with scene.open(own=True) as authority:
        signers = {entry.signer for entry in authority.ledger.entries()}
        assert authority.authority.fingerprint == own
        assert TrustBundle.from_pems([authority.authority.trust_bundle()]) == both
        assert all(map(authority.authority.trusts, signers))
        assert authority.opened_authority.changing is None
        why = "the root cannot be rotated while a former CA from files is still trusted, until "
        assert why in authority.opened_authority.why_not
    scene.now += 41 * DAY
    with scene.open(own=True) as authority:
        assert authority.authority.trust_bundle() == built_in
        assert isinstance(authority.opened_authority.changing, ChangingAuthority)


def test_missing_setting_for_the_external_ca_creates_no_new_ca(scene: Scene) -> None:
    """The ledger knows that another CA has signed, and the error names the setting."""
    scene.put("root")
    with scene.open() as authority:
        scene.issued(authority)
    raises_exc = pytest.raises(
        StateError,
        match="; restore ca\\.pem and ca\\.key, set authority_directory if that CA signed them, or "
        "create a new CA with",
    )
    with raises_exc, scene.open(own=True):
        pass
    assert not (scene.state / "ca").exists()


def test_lost_ledger_of_an_external_ca_stops_the_start(scene: Scene) -> None:
    """This is the same as with the built-in CA."""
    scene.put("root")
    with scene.open() as authority:
        scene.issued(authority)
    with scene.open() as authority:  # records the first certificate if that was not done at its issue
        pass
    (scene.state / LEDGER_FILE).unlink()
    with pytest.raises(StateError, match=r"ledger .* is missing or empty"), scene.open():
        pass


def test_external_ca_is_refused_during_a_rotation_of_the_built_in_root(scene: Scene) -> None:
    """Both roots of the rotation would have to be trusted, and its steps could not be taken."""
    with scene.open(own=True) as authority:
        assert authority.opened_authority.changing is not None
        authority.opened_authority.changing.begin(scene.now)
    scene.put("root")
    with (
        pytest.raises(
            StateError,
            match="is being rotated; finish or abort this rotation before you use another CA "
            "\\(authority_directory or authority_certificate\\)",
        ),
        scene.open(),
    ):
        pass


def test_invalid_external_ca_is_refused_and_the_previous_one_continues(scene: Scene) -> None:
    """It may be expired, no CA, below a path length of 0, without its root, or with another key.

    A start with it fails.
    """
    good = scene.put("good")
    upper = ca("upper", scene.now, good, path_length=0)
    lower = ca("lower", scene.now, upper)
    no_ca = ca("leaf", scene.now, is_ca=False)
    old = ca("old", scene.now - 30 * DAY, days=1)
    with scene.open() as authority:
        bundle = authority.authority.trust_bundle()
        assert authority.opened_authority.tend is not None
        for bad, roots, between, word in (
            (old, (old,), b"", "expired at"),
            (no_ca, (no_ca,), b"", "not a CA certificate: it may not sign other certificates"),
            (lower, (good,), upper.pem, "its path length"),
            (lower, (), b"", "authority_roots|is signed by"),
        ):
            (scene.files / "ca.crt").unlink(missing_ok=True)
            bad.put(scene.files, *roots, between=between)
            with pytest.raises(StateError, match=word):
                authority.opened_authority.tend(scene.now)
            with pytest.raises(StateError, match=word), scene.open():
                pass
            assert authority.authority.trust_bundle() == bundle
            assert is_signed_by_bundle(scene.issued(authority), good.pem)
        (scene.files / "tls.crt").write_bytes(good.pem)  # half-way: the key still belongs to another CA
        with pytest.raises(StateError, match="does not match"):
            authority.opened_authority.tend(scene.now)
        good.put(scene.files, good)
        authority.opened_authority.tend(scene.now)


def test_external_ca_in_a_kubernetes_volume_is_replaced_atomically(scene: Scene) -> None:
    """A mounted Secret changes with one symbolic link.

    While the link is broken, the last valid CA continues.
    """
    first, second = ca("first", scene.now), ca("second", scene.now)
    for name, item in (("..1", first), ("..2", second)):
        item.put(scene.files / name, item)
    data = scene.files / "..data"
    data.symlink_to("..1")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (scene.files / name).symlink_to(f"..data/{name}")
    with scene.open() as authority:
        scene.issued(authority)
        assert authority.opened_authority.tend is not None
        (scene.files / "..tmp").symlink_to("..2")
        (scene.files / "..tmp").rename(data)
        authority.opened_authority.tend(scene.now)
        assert trusted(authority, first, second)
        data.unlink()
        data.symlink_to("..3")
        with pytest.raises(StateError, match="is missing"):
            authority.opened_authority.tend(scene.now)
        assert is_signed_by_bundle(scene.issued(authority), second.pem)


def test_external_ca_also_signs_server_certificates(scene: Scene) -> None:
    """Not only proxies get certificates of this CA."""
    root = scene.put("root")
    with scene.open() as authority:
        pair = issue_pair(
            authority.authority, Usage.SERVER, Names("ads", dns_names=("a.example",)), DAY, scene.now
        )
        assert is_signed_by_bundle(pair.chain_pem, root.pem)


@pytest.mark.parametrize("name", ["ca.pem", "roots.pem"])
def test_damaged_ca_of_the_state_directory_is_named_before_another_one_succeeds(
    scene: Scene, name: str
) -> None:
    """Its roots are trusted until its certificates have ended, so they must be readable at the change."""
    with scene.open(own=True):
        pass
    (scene.state / "ca" / name).write_text("damaged\n")
    scene.put("first")
    words = f"^{scene.state}/ca/{name} cannot be used: roots are not certificates in PEM; restore the right "
    with pytest.raises(StateError, match=words), scene.open():
        pass
    assert not (scene.state / "authority.json").exists()
