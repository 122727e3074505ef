"""Private keys encrypted at rest: nowhere in a directory is one to be read; with the passphrase all are."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from certs.contract import KeyKind, Names, Usage
from certs.custody import AuthorityWithLedger, Custody, opened, rebuilt
from certs.errors import StateError
from certs.issuers.file_authority import WatchedFiles
from certs.keys.pair import KeyPairOptions, issue_pair
from certs.peer import read_peer
from certs.proxy import issue_proxy
from certs.roots.authority import ChangingAuthority
from certs.roots.rotation import advanced
from certs.server import ads_server_certificate
from certs.state import files, sealed_state
from certs.state.pair_files import PairFiles
from certs.state.sealing import Seal, new_data_key, read_wrapped, wrapped
from certs.state.stored_pair import ADS_SERVER, WEBHOOK, Holder
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.tools import leak_forms as planted
from tests.unit.certs.issuers.cas import ca

DOMAIN = TrustDomain("mesh.example")
NAME = ProxyName.parse("one.store.shop")
KEY = b"-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n"
pytestmark = pytest.mark.usefixtures("cheap_passphrases")
HOLDERS = (ADS_SERVER, WEBHOOK, Holder("services/default/shop"))


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    """Return the file of a passphrase."""
    return written(tmp_path / "passphrase", "correct horse")


def written(path: Path, words: str) -> Path:
    """Write a passphrase as people do, with the end of a line."""
    path.write_text(f"{words}\n")
    path.chmod(0o600)
    return path


def begun(state: Path, now: datetime, passphrase: Path | None = None) -> None:
    """Have everything in a directory that has a key, a root that is being changed as well."""
    with opened(state, DOMAIN, now, custody=Custody(passphrase)) as found:
        pairs = PairFiles(state, found.seal)
        for holder in HOLDERS:
            pair = issue_pair(found.authority, Usage.SERVICE, Names("a"), timedelta(days=1), now)
            pairs.keep(holder, pair)
        assert isinstance(found.authority, ChangingAuthority)
        found.authority.begin(now)


def keys(state: Path, now: datetime, passphrase: Path | None) -> list[object]:
    """Return all that a directory has keys for, as whoever opens it finds it."""
    with opened(state, DOMAIN, now, custody=Custody(passphrase)) as found:
        pairs = PairFiles(state, found.seal)
        return [found.authority.fingerprint, found.authority.other, *map(pairs.load, HOLDERS)]


def contents(state: Path) -> dict[str, bytes]:
    """Return what all files of a directory hold."""
    return {str(each.relative_to(state)): each.read_bytes() for each in state.rglob("*") if each.is_file()}


def plain(state: Path) -> list[str]:
    """Return the files of a directory in which a private key can be read."""
    return sorted(name for name, content in contents(state).items() if b"PRIVATE KEY" in content)


def test_no_key_is_to_be_read(state: Path, now: datetime, passphrase: Path) -> None:
    """Of none of the kinds there are, in none of the forms in which its number may stand somewhere."""
    begun(state, now)
    secrets = planted.of_keys(state)
    assert len(secrets) == len(plain(state)) == 2 + len(HOLDERS)
    before = keys(state, now, None)
    with capture_logs() as logs:
        assert keys(state, now, passphrase) == before
        assert keys(state, now, passphrase) == before
    assert [(each["event"], each["files"]) for each in logs] == [("private keys encrypted", 5)]
    assert plain(state) == []
    assert {name: planted.seen(content, secrets) for name, content in contents(state).items()} == {
        name: [] for name in contents(state)
    }
    assert "correct horse" not in str(contents(state))


def test_from_the_first_start_on(state: Path, now: datetime, passphrase: Path) -> None:
    """No key is ever written as it is: not one of a new CA, a new root, a new pair."""
    written_plain: list[Path] = []
    write = files.write_private

    def watched(path: Path, content: bytes, *, durable: bool = True) -> None:
        if b"PRIVATE KEY" in content:
            written_plain.append(path)
        write(path, content, durable=durable)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "write_private", watched)
        begun(state, now, passphrase)
    assert (written_plain, plain(state)) == ([], [])


def test_a_root_is_changed_with_encrypted_keys(state: Path, now: datetime, passphrase: Path) -> None:
    """Through all of its stages, with a restart at each."""
    begun(state, now, passphrase)
    first = keys(state, now, passphrase)[0]
    while True:
        with opened(state, DOMAIN, now, custody=Custody(passphrase)) as found:
            assert isinstance(found.authority, ChangingAuthority)
            if found.authority.rotation is None:
                break
            found.authority.step(advanced(found.authority.rotation, now), now)
        assert plain(state) == []
    assert keys(state, now, passphrase)[0] != first


def test_a_ledger_is_rebuilt_and_cas_follow_each_other(
    tmp_path: Path, state: Path, now: datetime, passphrase: Path
) -> None:
    """As without encryption; the end of what the former has signed is known from certificates alone."""
    with opened(state, DOMAIN, now, custody=Custody(passphrase)) as found:
        ads_server_certificate(found.authority, PairFiles(state, found.seal), now)
        ends = PairFiles(state, found.seal).last_end()
        made = issue_proxy(found.authority, found.ledger, NAME, timedelta(days=1), now)
        own = found.authority.trust_bundle()
    (state / "ledger.sqlite").unlink()
    said = refused(state, now, passphrase)
    serial = said.partition("--rebuild-ledger ")[2].partition(",")[0]
    with opened(state, DOMAIN, now, rebuild=serial, custody=Custody(passphrase)) as found:
        assert found.rebuilding is not None
        found.rebuilding.show(read_peer(made.chain_pem), made.chain_pem, "a", now)
        found.rebuilding.confirm(made.serial)
    assert rebuilt(state) == 1
    root = ca("root", now)
    root.put(tmp_path / "files", root)
    custody = Custody(passphrase, WatchedFiles.within(tmp_path / "files"))
    with opened(state, DOMAIN, now, custody=custody) as found:
        (former,) = found.whose.standing().formers
        assert (former.roots.pem, former.until) == (own, ends)
        pair = issue_pair(found.authority, Usage.SERVICE, Names("a"), timedelta(days=1), now)
        PairFiles(state, found.seal).keep(HOLDERS[2], pair)
    assert plain(state) == []


def test_a_ca_of_somebody_elses_making(state: Path, now: datetime, passphrase: Path) -> None:
    """Other forms of a key than ours are encrypted as well, what stands around it stays."""
    with opened(state, DOMAIN, now):
        pass
    path = state / "ca" / "ca.key"
    text = b"-----BEGIN EC PARAMETERS-----\nBggq\n-----END EC PARAMETERS-----\n"
    path.write_bytes(text + path.read_bytes())
    (first, *_), (second, *_) = keys(state, now, None), keys(state, now, passphrase)
    assert first == second
    assert path.read_bytes().startswith(text)
    assert plain(state) == []


@pytest.mark.parametrize("kind", KeyKind)
def test_each_kind_of_key(kind: KeyKind, state: Path, now: datetime, passphrase: Path) -> None:
    """RSA as ECDSA."""
    with opened(state, DOMAIN, now, custody=Custody(passphrase)) as found:
        pair = issue_pair(
            found.authority, Usage.SERVICE, Names("a"), timedelta(days=1), now, KeyPairOptions(key=kind)
        )
        PairFiles(state, found.seal).keep(HOLDERS[2], pair)
        assert PairFiles(state, found.seal).load(HOLDERS[2]) == pair
    assert plain(state) == []


def refused(state: Path, now: datetime, passphrase: Path | None) -> str:
    """Return why a directory cannot be opened; nothing in it is other then."""
    before = contents(state)
    with pytest.raises(StateError) as error, opened(state, DOMAIN, now, custody=Custody(passphrase)):
        pass
    assert contents(state) == before
    assert "horse" not in str(error.value)
    return str(error.value)


def test_what_is_wrong_is_said_and_nothing_is_lost(
    tmp_path: Path, state: Path, now: datetime, passphrase: Path
) -> None:
    """No passphrase, another one, no seal, a damaged one: none of it begins anything anew."""
    begun(state, now, passphrase)
    assert (
        "set key_passphrase_file (MESHWRIGHT_KEY_PASSPHRASE_FILE) to the file with the passphrase"
    ) in refused(state, now, None)
    other = written(tmp_path / "other", "battery staple")
    assert f"the passphrase in {other} does not decrypt the private keys in" in refused(state, now, other)
    assert "must have a passphrase: one line of at most" in refused(
        state, now, written(tmp_path / "empty", "")
    )
    assert "must have a passphrase: one line of at most" in refused(
        state, now, written(tmp_path / "lines", "a horse\nb")
    )
    assert "is missing" in refused(state, now, tmp_path / "none")
    assert "in the state directory" in refused(state, now, written(state / "passphrase", "correct horse"))
    (state / "passphrase").unlink()
    seal = (state / "seal.json").read_bytes()
    (state / "seal.json").unlink()
    assert (
        "from a backup. Without a backup the encrypted keys are lost; move their files to another place"
    ) in refused(state, now, passphrase)
    assert "a private key is encrypted, but no passphrase is set" in refused(state, now, None)
    numbers = ({"n": 2**40}, {"n": 3}, {"r": 0}, {"r": -1}, {"p": 0}, {"p": 65}, {"kdf": "none"})
    for damaged in (b"", b"{}", b"[]", seal[:40], *(_with(seal, **each) for each in numbers)):
        (state / "seal.json").write_bytes(damaged)
        assert "is damaged:" in refused(state, now, passphrase)
    (state / "seal.json").write_bytes(_with(seal, salt="00" * 16))
    assert "does not decrypt the private keys in" in refused(state, now, passphrase)
    (state / "seal.json").write_bytes(seal)
    assert keys(state, now, passphrase)


def _with(content: bytes, **other: object) -> bytes:
    return json.dumps({**json.loads(content), **other}).encode()


def test_a_damaged_key(state: Path, now: datetime, passphrase: Path) -> None:
    """That of the CA is an error; a pair can be made anew, as one that is damaged otherwise."""
    begun(state, now, passphrase)
    seal = sealed_state.opened(state, passphrase)
    pair, ca = state / "ads" / "certificate.pem", state / "ca" / "ca.key"
    ours, strange = pair.read_bytes(), Seal(new_data_key()).closed(KEY)
    pair.write_bytes(strange)
    with pytest.raises(
        StateError, match="an encrypted private key is damaged or belongs to another state directory"
    ):
        PairFiles(state, seal).load(ADS_SERVER)
    pair.write_bytes(ours)
    ca.write_bytes(strange)
    assert "an encrypted private key is damaged or belongs to another state directory" in refused(
        state, now, passphrase
    )
    with pytest.raises(StateError, match="is encrypted") as error:
        PairFiles(state).load(ADS_SERVER)
    assert type(error.value) is StateError, "one that is corrupt would be made anew"


class Died(Exception):
    """The process ended here."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return what lets so many files be written or removed, and has the process die at the next one."""
    left = [10**6]

    def counted(do: Callable[..., object]) -> Callable[..., object]:
        def did(*args: object, **told: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Died
            return do(*args, **told)

        return did

    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))
    monkeypatch.setattr(os, "rename", counted(os.rename))

    def after(steps: int) -> None:
        left[0] = steps

    yield after
    left[0] = 10**6


@pytest.mark.parametrize("way", ["seal", "unseal", "change"])
def test_who_dies_on_the_way_goes_on_where_he_was(
    way: str, tmp_path: Path, state: Path, now: datetime, passphrase: Path, dying: Callable[[int], None]
) -> None:
    """At each step of it: whichever passphrase is in force, all keys are there with it."""
    new = written(tmp_path / "new", "battery staple")
    begun(state, now, None if way == "seal" else passphrase)
    expected = keys(state, now, None if way == "seal" else passphrase)
    steps = 0
    while True:
        dying(min(steps, 1))
        try:
            match way:
                case "seal":
                    sealed_state.opened(state, passphrase)
                case "unseal":
                    sealed_state.unsealed(state, passphrase)
                case _:
                    sealed_state.change_passphrase(state, passphrase, new)
            break
        except Died:
            dying(10**6)
            content = files.read(state / "seal.json")
            seal = Seal(None if content is None else read_wrapped(content).data_key(b"correct horse"))
            assert [PairFiles(state, seal).load(each) for each in HOLDERS] == expected[2:]
            steps += 1
    dying(10**6)
    assert steps >= 1 if way == "change" else steps > len(HOLDERS)
    match way:
        case "seal":
            assert (keys(state, now, passphrase), plain(state)) == (expected, [])
        case "unseal":
            assert keys(state, now, None) == expected
            assert not (state / "seal.json").exists()
        case _:
            assert keys(state, now, new) == expected
            assert "does not decrypt the private keys in" in refused(state, now, passphrase)


def test_a_key_that_is_elsewhere(tmp_path: Path, state: Path, now: datetime, passphrase: Path) -> None:
    """What a link leads to is somebody else's: it stays as it is, can be used, and that is said."""
    with opened(state, DOMAIN, now):
        pass
    (state / "ca" / "ca.key").rename(tmp_path / "ca.key")
    (state / "ca" / "ca.key").symlink_to(tmp_path / "ca.key")
    with capture_logs() as logs:
        assert keys(state, now, passphrase)
    assert "private key unchanged: its file is a symbolic link" in str(logs)
    assert b"PRIVATE KEY" in (tmp_path / "ca.key").read_bytes()


def test_who_can_read_the_passphrase(state: Path, now: datetime, passphrase: Path) -> None:
    """A file that others can read is used, as a Secret that is mounted may be; it is said."""
    passphrase.chmod(0o644)
    with capture_logs() as logs:
        assert keys(state, now, passphrase)
    assert "can be read by other users" in str(logs)


def test_what_shows_nothing() -> None:
    """Neither the data key nor what has it is in a repr."""
    key = new_data_key()
    for shown in (repr(Seal(key)), str(Seal(key)), repr(wrapped(key, b"correct horse"))):
        assert planted.seen(shown.encode(), {"data key": key, "passphrase": b"correct horse"}) == []


def test_found(state: Path, now: datetime) -> None:
    """Without the setting there is no seal, and what is opened encrypts nothing."""
    with opened(state, DOMAIN, now) as found:
        assert isinstance(found, AuthorityWithLedger)
        assert not found.seal.encrypts
    assert not (state / "seal.json").exists()
