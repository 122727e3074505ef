"""Tests of successive issuers: which roots are trusted, for how long, and after a restart."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from certs.authority_files.store import AuthorityFiles
from certs.contract import IssuerKind, Names, Usage
from certs.errors import IssuerError, StateError
from certs.issuer_selection import open_issuer
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.issuers.succeeding_issuer import Role, SucceedingIssuer
from certs.issuers.succession import SETTLING, FormerIssuer, Succession, read, written
from certs.keys.bundle import TrustBundle
from certs.keys.pair import issue_pair
from certs.roots.role_succession import RoleSuccession
from certs.roots.succeeding_authority import OpenedAuthority
from certs.state.pair_files import PairFiles
from certs.state.stored_pair import Holder
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority
from tests.unit.certs.roots.memory import MemoryAuthority, Record

DOMAIN = TrustDomain("mesh.example")
DAY = timedelta(days=1)
ISSUER_FILE = "issuer.json"
NAMES = Names("service-1", uris=("spiffe://mesh.example/ns/shop/sa/store",))


def _record(state: Path) -> RoleSuccession:
    """Return the record of the issuers of service certificates in a state directory."""
    return RoleSuccession(AuthorityFiles(state), Role.SERVICES)


class Scene:
    """Three issuers, and a state directory in which one follows another."""

    def __init__(self, folder: Path, now: datetime) -> None:
        self.state, self.now = folder / "state", now
        self.issuers = [own_authority(folder / str(n), DOMAIN, now) for n in range(3)]
        self.state.mkdir()

    def start(self, number: int, *, drops: bool = False, name: str = "") -> SucceedingIssuer:
        """Start with one of the issuers, as a server does."""
        first = Succession("issuer 0", self.roots(0), self.now)
        ends = PairFiles(self.state).services_end
        before = _record(self.state).read() or first
        called = name or f"issuer {number}"
        store = _record(self.state)
        return SucceedingIssuer(self.issuers[number], called, store, before, ends, self.now, drops=drops)

    def issued(self, issuer: SucceedingIssuer, account: str = "store") -> None:
        """Issue and store a certificate."""
        pair = issue_pair(issuer, Usage.SERVICE, NAMES, DAY, self.now)
        pairs, holder = PairFiles(self.state), Holder(f"services/shop/{account}")
        before = pairs.load(holder)
        pairs.keep(holder, pair, None if before is None else before.leaf.serial)

    def roots(self, *numbers: int) -> TrustBundle:
        """Return the roots of these issuers."""
        return TrustBundle.from_pems([self.issuers[number].trust_bundle() for number in numbers])


@pytest.fixture
def scene(tmp_path: Path, now: datetime) -> Scene:
    """Return three issuers with an empty state directory."""
    return Scene(tmp_path, now)


def test_former_issuer_is_trusted_until_its_last_certificate_has_ended(scene: Scene) -> None:
    """This is also true after restarts."""
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


def test_full_disk_does_not_prevent_a_start_with_the_same_issuer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expired former issuer is removed later.

    Another issuer cannot be used, because it must be recorded first.
    """
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


def test_former_issuer_without_certificates_is_not_trusted(scene: Scene) -> None:
    """The new issuer needs no waiting time either."""
    scene.start(0)
    second = scene.start(1)
    assert second.trust_bundle() == scene.issuers[1].trust_bundle()
    assert second.settled() <= scene.now


def test_all_issuers_are_trusted_after_several_changes_and_a_change_back(scene: Scene) -> None:
    """Each root is in the bundle only once."""
    scene.issued(scene.start(0))
    scene.issued(scene.start(1))
    scene.now += timedelta(hours=1)
    scene.issued(scene.start(2))
    assert scene.start(2).trust_bundle() == scene.roots(0, 1, 2).pem
    back = scene.start(0)
    assert back.trust_bundle() == scene.roots(0, 1, 2).pem
    back.look(scene.now + DAY)
    assert back.trust_bundle() == scene.issuers[0].trust_bundle()


def test_issuer_that_is_used_again_is_no_longer_a_former_issuer(scene: Scene) -> None:
    """After a change back to the built-in issuer and a rotation of its root, the old root is not trusted."""
    scene.issued(scene.start(0, name="own", drops=True))
    scene.issued(scene.start(1))
    back = scene.start(0, name="own", drops=True)
    assert back.trust_bundle() == scene.roots(0, 1).pem
    changed = scene.start(2, name="own", drops=True)
    assert changed.trust_bundle() == changed.signing_bundle() == scene.roots(1, 2).pem
    again = scene.start(1)
    assert again.trust_bundle() == scene.roots(1, 2).pem
    assert [item.roots for item in _record(scene.state).read().formers] == [scene.roots(2)]  # type: ignore[union-attr]


def test_former_issuer_keeps_only_roots_that_are_not_in_use(scene: Scene, now: datetime) -> None:
    """This is also true if it was recorded with all its roots."""
    both = FormerIssuer(scene.roots(0, 1), now + DAY)
    succession = Succession("own", scene.roots(0), now, (both,)).lasting(now)
    assert [former_issuer.roots for former_issuer in succession.formers] == [scene.roots(1)]
    assert succession.trusted == scene.roots(0, 1)
    assert succession.lasting(now + DAY).formers == ()


def test_new_root_is_settled_a_fixed_time_after_it_was_first_trusted(scene: Scene) -> None:
    """A restart does not begin the time again, and a change back needs no waiting time."""
    scene.issued(scene.start(0))
    assert scene.start(1).settled() == scene.now + SETTLING
    scene.now += SETTLING / 2
    assert scene.start(1).settled() == scene.now + SETTLING / 2
    scene.now += SETTLING
    assert scene.start(0).settled() <= scene.now


def test_new_root_is_in_use_once_connected_sidecars_have_acknowledged_it(scene: Scene) -> None:
    """The server asks after a waiting time.

    An acknowledgement counts only for these roots, and is kept through restarts.
    """
    scene.issued(scene.start(0))
    second = scene.start(1)
    assert (second.waits(scene.now), second.awaited(scene.now)) == (True, None)
    scene.now += SETTLING
    assert (second.waits(scene.now), second.awaited(scene.now)) == (True, scene.roots(1))
    again = scene.start(1)
    again.have_taken(scene.roots(0))
    assert again.awaited(scene.now + DAY) == scene.roots(1)
    again.have_taken(scene.roots(1))
    for succeeding_issuer in (again, scene.start(1)):
        assert (succeeding_issuer.waits(scene.now), succeeding_issuer.awaited(scene.now)) == (False, None)
    assert scene.start(2).waits(scene.now + DAY / 2)


def test_servers_of_one_mesh_share_the_record_of_issuers(scene: Scene, tmp_path: Path) -> None:
    """A server that was overtaken takes the other server's record, and makes its own change to that one.

    So the time of a new root begins once, and an acknowledgement is not lost.
    """
    path = tmp_path / "told"
    shutil.copytree(tmp_path / "0" / "ca", path)
    watched = WatchedFiles(path / "ca.pem", path / "ca.key")
    before, ends = Succession("files", scene.roots(0), scene.now), PairFiles(scene.state).services_end
    cas = [WatchedIssuer(watched, DOMAIN, scene.now) for _ in range(2)]
    early, late = (
        SucceedingIssuer(ca, "files", _record(scene.state), before, ends, scene.now, drops=False)
        for ca in cas
    )
    scene.issued(early)
    shutil.copytree(tmp_path / "1" / "ca", path, dirs_exist_ok=True)
    for ca in cas:
        ca.look(scene.now)
    early.look(scene.now)
    recorded = _record(scene.state).read()
    late.look(scene.now + timedelta(seconds=30))
    assert late.settled() == early.settled() == scene.now + SETTLING
    assert late.formers == early.formers != ()
    assert _record(scene.state).read() == recorded
    early.have_taken(scene.roots(1))
    late.look(scene.now + DAY)
    assert _record(scene.state).read() == Succession("files", scene.roots(1), scene.now + SETTLING)
    assert not late.waits(scene.now + DAY)


def test_server_takes_over_what_another_one_has_recorded(scene: Scene, tmp_path: Path) -> None:
    """It learns of the acknowledgement, and of the former roots, without a change of its own.

    A certificate that only this server knows keeps the former roots for longer.
    """
    path = tmp_path / "told"
    shutil.copytree(tmp_path / "0" / "ca", path)
    watched = WatchedFiles(path / "ca.pem", path / "ca.key")
    before, pairs, record = Succession("files", scene.roots(0), scene.now), PairFiles(scene.state), Record()
    store = RoleSuccession(MemoryAuthority(record), Role.SERVICES)
    cas = [WatchedIssuer(watched, DOMAIN, scene.now) for _ in range(2)]
    early, late = (
        SucceedingIssuer(ca, "files", store, before, pairs.services_end, scene.now, drops=False) for ca in cas
    )
    scene.issued(early)
    unstored = issue_pair(late, Usage.SERVICE, NAMES, 2 * DAY, scene.now).leaf
    shutil.copytree(tmp_path / "1" / "ca", path, dirs_exist_ok=True)
    cas[0].look(scene.now)
    early.look(scene.now)
    assert [former.until for former in early.formers] == [scene.now + DAY]
    late.look(scene.now)
    assert (late.trust_bundle(), late.waits(scene.now)) == (scene.roots(0, 1).pem, True)
    cas[1].look(scene.now)
    for issuer in (late, early):
        issuer.look(scene.now)
        assert [former.until for former in issuer.formers] == [unstored.not_after]
    early.have_taken(scene.roots(1))
    late.look(scene.now + SETTLING)
    assert not late.waits(scene.now + SETTLING)


def test_record_of_an_older_version_is_settled_by_time_alone(scene: Scene) -> None:
    """An older version stored no acknowledgements."""
    scene.issued(scene.start(0))
    scene.start(1)
    noted = json.loads((scene.state / ISSUER_FILE).read_text())
    del noted["heard"]
    (scene.state / ISSUER_FILE).write_text(json.dumps(noted))
    assert scene.start(1).waits(scene.now)
    assert not scene.start(1).waits(scene.now + SETTLING)


def test_issuer_with_a_new_root_counts_as_another_issuer(scene: Scene) -> None:
    """An example is a Vault with a new PKI.

    The built-in issuer is an exception, because it manages its own roots.
    """
    scene.issued(scene.start(0, name="vault"))
    assert scene.start(1, name="vault").trust_bundle() == scene.roots(0, 1).pem
    scene.issued(scene.start(1, name="own", drops=True))
    assert (
        scene.roots(1).holds(TrustBundle.from_pems([scene.start(2, name="own", drops=True).trust_bundle()]))
        is False
    )
    assert not TrustBundle.from_pems([scene.start(2, name="own", drops=True).trust_bundle()]).holds(
        scene.roots(1)
    )


def test_unrecorded_root_adds_to_the_bundle_but_does_not_sign(scene: Scene, tmp_path: Path) -> None:
    """An issuer may find another root in its files before `look` records it.

    Proxies do not trust this root yet.
    """
    path = tmp_path / "told"
    shutil.copytree(tmp_path / "0" / "ca", path)
    ca = WatchedIssuer(WatchedFiles(path / "ca.pem", path / "ca.key"), DOMAIN, scene.now)
    ends, before = PairFiles(scene.state).services_end, Succession("files", scene.roots(0), scene.now)
    issuer = SucceedingIssuer(ca, "files", _record(scene.state), before, ends, scene.now, drops=False)
    scene.issued(issuer)
    shutil.copytree(tmp_path / "1" / "ca", path, dirs_exist_ok=True)
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


def test_certificate_that_was_not_stored_extends_the_trust_in_its_issuer(
    scene: Scene, tmp_path: Path
) -> None:
    """The disk may be full, or a shorter certificate may have replaced a longer one that is still in use."""
    path = tmp_path / "told"
    shutil.copytree(tmp_path / "0" / "ca", path)
    ca = WatchedIssuer(WatchedFiles(path / "ca.pem", path / "ca.key"), DOMAIN, scene.now)
    ends, before = PairFiles(scene.state).services_end, Succession("files", scene.roots(0), scene.now)
    issuer = SucceedingIssuer(ca, "files", _record(scene.state), before, ends, scene.now, drops=False)
    issue_pair(issuer, Usage.SERVICE, NAMES, 3 * DAY, scene.now)
    scene.issued(issuer)
    shutil.copytree(tmp_path / "1" / "ca", path, dirs_exist_ok=True)
    ca.look(scene.now)
    issuer.look(scene.now)
    issuer.look(scene.now + 2 * DAY)
    assert issuer.trust_bundle() == scene.roots(0, 1).pem
    issuer.look(scene.now + 3 * DAY)
    assert issuer.trust_bundle() == scene.roots(1).pem


def test_replaced_issuer_is_logged_once(scene: Scene) -> None:
    """A restart does not repeat the log messages."""
    with structlog.testing.capture_logs() as logs:
        scene.issued(scene.start(0))
        scene.start(1)
        scene.start(1).look(scene.now + DAY)
    assert [log["event"] for log in logs if "issuer" in log["event"]] == [
        "issuer of service certificates replaced",
        "roots of the previous issuer stay trusted until its last certificate expires",
        "roots of a former issuer removed: its last certificate has expired",
    ]


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"issuer": "a", "roots": "x"}'])
def test_damaged_issuer_file_is_an_error(scene: Scene, content: bytes) -> None:
    """If the file were ignored, the mesh would not trust the former issuer."""
    (scene.state / ISSUER_FILE).write_bytes(content)
    with pytest.raises(
        StateError, match=r"issuer.json is damaged: .*or move it away if this is the first issuer"
    ):
        _record(scene.state).read()


def test_written_succession_is_read_back_unchanged(scene: Scene) -> None:
    """Only the owner may read the file."""
    scene.issued(scene.start(0))
    scene.start(1)
    succession = _record(scene.state).read()
    assert succession is not None
    assert (succession.name, len(succession.formers)) == ("issuer 1", 1)
    assert read(written(succession)) == succession
    assert (scene.state / ISSUER_FILE).stat().st_mode & 0o777 == 0o600


def test_built_in_issuer_is_the_authority_and_writes_no_file(tmp_path: Path) -> None:
    """Its bundle is that of the authority, byte for byte, and a full disk cannot stop it."""
    now = datetime.now(UTC)
    authority = own_authority(tmp_path, DOMAIN, now)
    whose = OpenedAuthority(authority, IssuerKind.BUILT_IN, str(tmp_path))
    opened = open_issuer(None, whose, _record(tmp_path), PairFiles(tmp_path).services_end, now)
    assert opened.issuer.trust_bundle() == opened.issuer.signing_bundle() == authority.trust_bundle()
    assert (opened.kind.value, opened.remote) == ("built-in", False)
    opened.tend(now)
    assert not (tmp_path / ISSUER_FILE).exists(), "it needs none, nor room for one on a full disk"
