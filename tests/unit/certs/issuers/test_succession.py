"""One issuer after another: who is trusted, for how long, and that it is known after a restart."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from certs.contract import IssuerKind, Names, Usage
from certs.errors import IssuerError, StateError
from certs.issuer_selection import open_issuer
from certs.issuers.authority import CertificateAuthority
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.issuers.succeeding_issuer import ISSUER_FILE, SucceedingIssuer, known
from certs.issuers.succession import SETTLING, FormerIssuer, Succession, read, written
from certs.keys.bundle import TrustBundle
from certs.keys.pair import issue_pair
from certs.roots.succeeding_authority import OpenedAuthority
from certs.state.pair_files import PairFiles
from certs.state.stored_pair import Holder
from meshwright.mesh.names import TrustDomain

DOMAIN = TrustDomain("mesh.example")
DAY = timedelta(days=1)
NAMES = Names("service-1", uris=("spiffe://mesh.example/ns/shop/sa/store",))


class Scene:
    """Issuers, and a state directory in which one follows another."""

    def __init__(self, folder: Path, now: datetime) -> None:
        self.state, self.now = folder / "state", now
        self.issuers = [CertificateAuthority.open(folder / str(n), DOMAIN, now) for n in range(3)]
        self.state.mkdir()

    def start(self, number: int, *, drops: bool = False, name: str = "") -> SucceedingIssuer:
        """Begin with one of the issuers, as a server does."""
        first = Succession("issuer 0", self.roots(0), self.now)
        ends = PairFiles(self.state).services_end
        before = known(self.state) or first
        called = name or f"issuer {number}"
        return SucceedingIssuer(self.issuers[number], called, self.state, before, ends, self.now, drops=drops)

    def issued(self, issuer: SucceedingIssuer, account: str = "store") -> None:
        """Have a certificate issued, and kept."""
        pair = issue_pair(issuer, Usage.SERVICE, NAMES, DAY, self.now)
        PairFiles(self.state).keep(Holder(f"services/shop/{account}"), pair)

    def roots(self, *numbers: int) -> TrustBundle:
        """Return the roots of these issuers."""
        return TrustBundle.of([self.issuers[number].trust_bundle() for number in numbers])


@pytest.fixture
def scene(tmp_path: Path, now: datetime) -> Scene:
    """Return a state directory without anything."""
    return Scene(tmp_path, now)


def test_the_former_is_trusted_until_all_that_it_signed_has_ended(scene: Scene) -> None:
    """Through restarts; the file says who it was."""
    scene.issued(scene.start(0))
    second = scene.start(1)
    assert second.trust_bundle() == second.signing_bundle() == scene.roots(0, 1).pem
    assert second.trust_bundle() is second.trust_bundle(), "it is asked for of each identity"
    scene.now += DAY - timedelta(seconds=1)
    assert scene.start(1).trust_bundle() == scene.roots(0, 1).pem
    second.look(scene.now + timedelta(seconds=1))
    assert second.trust_bundle() == scene.issuers[1].trust_bundle()
    scene.now += timedelta(seconds=1)
    assert scene.start(1).trust_bundle() == scene.issuers[1].trust_bundle()


def test_a_full_disk_keeps_no_server_from_starting_with_the_same_issuer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is over is forgotten later, and each look says why not now; another issuer must be noted."""
    scene.issued(scene.start(0))
    scene.start(1)
    scene.now += DAY

    def full(path: Path, content: bytes) -> None:
        raise StateError(f"{path} cannot be written: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("certs.state.files.write_private", full)
        again = scene.start(1)
        assert again.trust_bundle() == scene.roots(0, 1).pem
        with pytest.raises(StateError, match="No space left"):
            again.look(scene.now)
        with pytest.raises(StateError, match="No space left"):
            scene.start(2)
    again.look(scene.now)
    assert again.trust_bundle() == scene.issuers[1].trust_bundle()


def test_where_nothing_was_issued_nothing_is_left_of_the_former(scene: Scene) -> None:
    """Nor is anything to be waited for."""
    scene.start(0)
    second = scene.start(1)
    assert second.trust_bundle() == scene.issuers[1].trust_bundle()
    assert second.settled() <= scene.now


def test_a_change_while_another_is_not_over_and_a_change_back(scene: Scene) -> None:
    """All of them are trusted, and each once."""
    scene.issued(scene.start(0))
    scene.issued(scene.start(1))
    scene.now += timedelta(hours=1)
    scene.issued(scene.start(2))
    assert scene.start(2).trust_bundle() == scene.roots(0, 1, 2).pem
    back = scene.start(0)
    assert back.trust_bundle() == scene.roots(0, 1, 2).pem
    back.look(scene.now + DAY)
    assert back.trust_bundle() == scene.issuers[0].trust_bundle()


def test_whose_roots_are_in_force_again_is_no_former(scene: Scene) -> None:
    """From the built-in one to a Vault and back, and then its root gives way: it is trusted no longer."""
    scene.issued(scene.start(0, name="own", drops=True))
    scene.issued(scene.start(1))
    back = scene.start(0, name="own", drops=True)
    assert back.trust_bundle() == scene.roots(0, 1).pem
    changed = scene.start(2, name="own", drops=True)
    assert changed.trust_bundle() == changed.signing_bundle() == scene.roots(1, 2).pem
    again = scene.start(1)
    assert again.trust_bundle() == scene.roots(1, 2).pem
    assert [each.roots for each in known(scene.state).formers] == [scene.roots(2)]  # type: ignore[union-attr]


def test_of_a_former_with_several_roots_those_stay_that_are_not_in_force(scene: Scene, now: datetime) -> None:
    """Also where it was noted before it was known that they are."""
    both = FormerIssuer(scene.roots(0, 1), now + DAY)
    found = Succession("own", scene.roots(0), now, (both,)).lasting(now)
    assert [each.roots for each in found.formers] == [scene.roots(1)]
    assert found.trusted == scene.roots(0, 1)
    assert found.lasting(now + DAY).formers == ()


def test_it_is_settled_a_while_after_a_root_was_first_trusted(scene: Scene) -> None:
    """A restart within that does not begin it anew, and a change back needs none."""
    scene.issued(scene.start(0))
    assert scene.start(1).settled() == scene.now + SETTLING
    scene.now += SETTLING / 2
    assert scene.start(1).settled() == scene.now + SETTLING / 2
    scene.now += SETTLING
    assert scene.start(0).settled() <= scene.now


def test_it_is_settled_once_all_who_are_here_have_taken_the_root(scene: Scene) -> None:
    """Which is asked when others had the time to come; known through restarts, and of these roots alone."""
    scene.issued(scene.start(0))
    second = scene.start(1)
    assert (second.waits(scene.now), second.awaited(scene.now)) == (True, None)
    scene.now += SETTLING
    assert (second.waits(scene.now), second.awaited(scene.now)) == (True, scene.roots(1))
    again = scene.start(1)
    again.have_taken(scene.roots(0))
    assert again.awaited(scene.now + DAY) == scene.roots(1)
    again.have_taken(scene.roots(1))
    for each in (again, scene.start(1)):
        assert (each.waits(scene.now), each.awaited(scene.now)) == (False, None)
    assert scene.start(2).waits(scene.now + DAY / 2)


def test_what_a_server_before_has_noted_was_heard(scene: Scene) -> None:
    """It knew the time alone."""
    scene.issued(scene.start(0))
    scene.start(1)
    noted = json.loads((scene.state / ISSUER_FILE).read_text())
    del noted["heard"]
    (scene.state / ISSUER_FILE).write_text(json.dumps(noted))
    assert scene.start(1).waits(scene.now)
    assert not scene.start(1).waits(scene.now + SETTLING)


def test_an_issuer_that_signs_with_another_root_is_another(scene: Scene) -> None:
    """A Vault whose PKI was exchanged; but not the built-in one, which decides that itself."""
    scene.issued(scene.start(0, name="vault"))
    assert scene.start(1, name="vault").trust_bundle() == scene.roots(0, 1).pem
    scene.issued(scene.start(1, name="own", drops=True))
    assert (
        scene.roots(1).holds(TrustBundle.of([scene.start(2, name="own", drops=True).trust_bundle()])) is False
    )
    assert not TrustBundle.of([scene.start(2, name="own", drops=True).trust_bundle()]).holds(scene.roots(1))


def test_a_root_that_is_not_noted_yet_takes_nothing_away_and_serves_nobody(
    scene: Scene, tmp_path: Path
) -> None:
    """An issuer finds another root in its files, or in an answer, before anybody has looked."""
    told = tmp_path / "told"
    shutil.copytree(tmp_path / "0" / "ca", told)
    ca = WatchedIssuer(WatchedFiles(told / "ca.pem", told / "ca.key"), DOMAIN, scene.now)
    ends, before = PairFiles(scene.state).services_end, Succession("files", scene.roots(0), scene.now)
    issuer = SucceedingIssuer(ca, "files", scene.state, before, ends, scene.now, drops=False)
    scene.issued(issuer)
    shutil.copytree(tmp_path / "1" / "ca", told, dirs_exist_ok=True)
    ca.look(scene.now)
    assert issuer.trust_bundle() == issuer.signing_bundle() == scene.roots(0, 1).pem
    with pytest.raises(
        IssuerError, match="files now signs with another root, which proxies do not trust yet"
    ):
        scene.issued(issuer, "other")
    issuer.look(scene.now)
    assert issuer.trust_bundle() == issuer.signing_bundle() == scene.roots(0, 1).pem
    assert issuer.settled() == scene.now + SETTLING
    scene.issued(issuer, "other")


def test_what_could_not_be_kept_is_trusted_to_its_end(scene: Scene, tmp_path: Path) -> None:
    """As on a full disk; and what a shorter one has taken the place of: somebody may show it still."""
    told = tmp_path / "told"
    shutil.copytree(tmp_path / "0" / "ca", told)
    ca = WatchedIssuer(WatchedFiles(told / "ca.pem", told / "ca.key"), DOMAIN, scene.now)
    ends, before = PairFiles(scene.state).services_end, Succession("files", scene.roots(0), scene.now)
    issuer = SucceedingIssuer(ca, "files", scene.state, before, ends, scene.now, drops=False)
    issue_pair(issuer, Usage.SERVICE, NAMES, 3 * DAY, scene.now)
    scene.issued(issuer)
    shutil.copytree(tmp_path / "1" / "ca", told, dirs_exist_ok=True)
    ca.look(scene.now)
    issuer.look(scene.now)
    issuer.look(scene.now + 2 * DAY)
    assert issuer.trust_bundle() == scene.roots(0, 1).pem
    issuer.look(scene.now + 3 * DAY)
    assert issuer.trust_bundle() == scene.roots(1).pem


def test_it_is_said_who_signs_and_who_did(scene: Scene) -> None:
    """Once: not at each restart."""
    with structlog.testing.capture_logs() as logs:
        scene.issued(scene.start(0))
        scene.start(1)
        scene.start(1).look(scene.now + DAY)
    assert [each["event"] for each in logs if "issuer" in each["event"]] == [
        "issuer of service certificates replaced",
        "roots of the previous issuer stay trusted until its last certificate expires",
        "roots of a former issuer removed: its last certificate has expired",
    ]


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"issuer": "a", "roots": "x"}'])
def test_a_file_that_is_another_s_is_an_error(scene: Scene, content: bytes) -> None:
    """Silently begun anew the mesh would not trust what it must."""
    (scene.state / ISSUER_FILE).write_bytes(content)
    with pytest.raises(
        StateError, match=r"issuer.json is damaged: .*or move it away if there was no earlier issuer"
    ):
        known(scene.state)


def test_what_is_written_is_read(scene: Scene) -> None:
    """As it was, whatever zone its moments are in."""
    scene.issued(scene.start(0))
    scene.start(1)
    succession = known(scene.state)
    assert succession is not None
    assert (succession.name, len(succession.formers)) == ("issuer 1", 1)
    assert read(written(succession)) == succession
    assert (scene.state / ISSUER_FILE).stat().st_mode & 0o777 == 0o600


def test_the_built_in_one_is_the_authority_itself(tmp_path: Path) -> None:
    """Byte for byte, also as it changes its root."""
    now = datetime.now(UTC)
    authority = CertificateAuthority.open(tmp_path, DOMAIN, now)
    opened = open_issuer(None, OpenedAuthority(authority, IssuerKind.BUILT_IN, tmp_path), tmp_path, now)
    assert opened.issuer.trust_bundle() == opened.issuer.signing_bundle() == authority.trust_bundle()
    assert (opened.kind.value, opened.remote) == ("built-in", False)
    opened.tend(now)
    assert not (tmp_path / ISSUER_FILE).exists(), "it needs none, nor room for one on a full disk"
