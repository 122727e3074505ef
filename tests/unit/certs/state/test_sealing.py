"""Tests of private keys encrypted at rest: unreadable in the directory, complete with the passphrase."""

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
from tests.tools.hypothesis_profiles import examples
from tests.unit.certs.issuers.example_cas import ca

DOMAIN = TrustDomain("mesh.example")
NAME = ProxyName.parse("one.store.shop")
KEY = b"-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n"
pytestmark = pytest.mark.usefixtures("cheap_passphrases")
HOLDERS = (ADS_SERVER, WEBHOOK, Holder("services/default/shop"))


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    """Return a file with a passphrase."""
    return written(tmp_path / "passphrase", "correct horse")


def written(path: Path, words: str) -> Path:
    """Write a passphrase to a file, with a newline as people do."""
    path.write_text(f"{words}\n")
    path.chmod(0o600)
    return path


def begun(state: Path, now: datetime, passphrase: Path | None = None) -> None:
    """Create everything in a directory that has a key, including a root in rotation."""
    with opened(state, DOMAIN, now, custody=Custody(passphrase)) as authority:
        pairs = PairFiles(state, authority.seal)
        for holder in HOLDERS:
            pair = issue_pair(authority.authority, Usage.SERVICE, Names("a"), timedelta(days=1), now)
            pairs.keep(holder, pair, None)
        assert isinstance(authority.authority, ChangingAuthority)
        authority.authority.begin(now)


def keys(state: Path, now: datetime, passphrase: Path | None) -> list[object]:
    """Open a directory; return everything that it has keys for."""
    with opened(state, DOMAIN, now, custody=Custody(passphrase)) as authority:
        pairs = PairFiles(state, authority.seal)
        return [authority.authority.fingerprint, authority.authority.other, *map(pairs.load, HOLDERS)]


def contents(state: Path) -> dict[str, bytes]:
    """Return the content of all files in a directory."""
    return {str(path.relative_to(state)): path.read_bytes() for path in state.rglob("*") if path.is_file()}


def plain(state: Path) -> list[str]:
    """Return the files of a directory with a readable private key."""
    return sorted(name for name, content in contents(state).items() if b"PRIVATE KEY" in content)


def test_no_private_key_is_readable_after_encryption(state: Path, now: datetime, passphrase: Path) -> None:
    """This covers every kind of key, in every encoding of its number."""
    begun(state, now)
    secrets = planted.of_keys(state)
    assert len(secrets) == len(plain(state)) == 2 + len(HOLDERS)
    before = keys(state, now, None)
    with capture_logs() as logs:
        assert keys(state, now, passphrase) == before
        assert keys(state, now, passphrase) == before
    assert [(log["event"], log["files"]) for log in logs] == [("private keys encrypted", 5)]
    assert plain(state) == []
    assert {name: planted.seen(content, secrets) for name, content in contents(state).items()} == {
        name: [] for name in contents(state)
    }
    assert "correct horse" not in str(contents(state))


def test_no_key_is_ever_written_in_plain_text_with_a_passphrase(
    state: Path, now: datetime, passphrase: Path
) -> None:
    """Keys of a new CA, a new root and a new pair are encrypted before they are written."""
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


def test_root_can_be_rotated_with_encrypted_keys(state: Path, now: datetime, passphrase: Path) -> None:
    """The rotation passes all stages, with a restart at each."""
    begun(state, now, passphrase)
    first = keys(state, now, passphrase)[0]
    while True:
        with opened(state, DOMAIN, now, custody=Custody(passphrase)) as authority:
            assert isinstance(authority.authority, ChangingAuthority)
            if authority.authority.rotation is None:
                break
            authority.authority.step(advanced(authority.authority.rotation, now), now)
        assert plain(state) == []
    assert keys(state, now, passphrase)[0] != first


def test_ledger_can_be_rebuilt_and_ca_replaced_with_encrypted_keys(
    tmp_path: Path, state: Path, now: datetime, passphrase: Path
) -> None:
    """The end of the former CA's certificates is found without decrypting their keys."""
    with opened(state, DOMAIN, now, custody=Custody(passphrase)) as authority:
        ads_server_certificate(authority.authority, PairFiles(state, authority.seal), now)
        ends = PairFiles(state, authority.seal).last_end()
        made = issue_proxy(authority.authority, authority.ledger, NAME, timedelta(days=1), now)
        own = authority.authority.trust_bundle()
    (state / "ledger.sqlite").unlink()
    text = refused(state, now, passphrase)
    serial = text.partition("--rebuild-ledger ")[2].partition(",")[0]
    with opened(state, DOMAIN, now, rebuild=serial, custody=Custody(passphrase)) as authority:
        assert authority.rebuilding is not None
        authority.rebuilding.show(read_peer(made.chain_pem), made.chain_pem, "a", now)
        authority.rebuilding.confirm(made.serial)
    assert rebuilt(state) == 1
    root = ca("root", now)
    root.put(tmp_path / "files", root)
    custody = Custody(passphrase, WatchedFiles.within(tmp_path / "files"))
    with opened(state, DOMAIN, now, custody=custody) as authority:
        (former,) = authority.opened_authority.standing().formers
        assert (former.roots.pem, former.until) == (own, ends)
        pair = issue_pair(authority.authority, Usage.SERVICE, Names("a"), timedelta(days=1), now)
        pairs = PairFiles(state, authority.seal)
        before = pairs.load(HOLDERS[2])
        assert pairs.keep(HOLDERS[2], pair, None if before is None else before.leaf.serial) == pair
    assert plain(state) == []


def test_key_of_another_tool_is_encrypted_and_surrounding_text_kept(
    state: Path, now: datetime, passphrase: Path
) -> None:
    """The file of the CA key may have other PEM blocks, such as EC parameters."""
    with opened(state, DOMAIN, now):
        pass
    path = state / "ca" / "ca.key"
    text = b"-----BEGIN EC PARAMETERS-----\nBggq\n-----END EC PARAMETERS-----\n"
    path.write_bytes(text + path.read_bytes())
    (first, *_), (second, *_) = keys(state, now, None), keys(state, now, passphrase)
    assert first == second
    assert path.read_bytes().startswith(text)
    assert plain(state) == []


@pytest.mark.fuzzed
@pytest.mark.parametrize("kind", [*KeyKind][: examples(len(KeyKind) - 1, fresh=len(KeyKind))])
def test_each_kind_of_key_is_encrypted(kind: KeyKind, state: Path, now: datetime, passphrase: Path) -> None:
    """A pair with an RSA or ECDSA key can be stored and loaded; `make fuzz` has the longest RSA key."""
    with opened(state, DOMAIN, now, custody=Custody(passphrase)) as authority:
        pair = issue_pair(
            authority.authority, Usage.SERVICE, Names("a"), timedelta(days=1), now, KeyPairOptions(key=kind)
        )
        PairFiles(state, authority.seal).keep(HOLDERS[2], pair, None)
        assert PairFiles(state, authority.seal).load(HOLDERS[2]) == pair
    assert plain(state) == []


def refused(state: Path, now: datetime, passphrase: Path | None) -> str:
    """Return why a directory cannot be opened; check that this changes no file."""
    before = contents(state)
    with pytest.raises(StateError) as error, opened(state, DOMAIN, now, custody=Custody(passphrase)):
        pass
    assert contents(state) == before
    assert "horse" not in str(error.value)
    return str(error.value)


def test_wrong_passphrase_or_seal_is_an_error_and_changes_no_file(
    tmp_path: Path, state: Path, now: datetime, passphrase: Path
) -> None:
    """This includes a missing passphrase, another one, a missing seal and a damaged one.

    No new CA is created.
    """
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
    assert "a private key is encrypted, but a passphrase is not set" in refused(state, now, None)
    numbers = ({"n": 2**40}, {"n": 3}, {"r": 0}, {"r": -1}, {"p": 0}, {"p": 65}, {"kdf": "none"})
    for damaged in (b"", b"{}", b"[]", seal[:40], *(_with(seal, **number) for number in numbers)):
        (state / "seal.json").write_bytes(damaged)
        assert "is damaged:" in refused(state, now, passphrase)
    (state / "seal.json").write_bytes(_with(seal, salt="00" * 16))
    assert "does not decrypt the private keys in" in refused(state, now, passphrase)
    (state / "seal.json").write_bytes(seal)
    assert keys(state, now, passphrase)


def _with(content: bytes, **other: object) -> bytes:
    return json.dumps({**json.loads(content), **other}).encode()


def test_damaged_encrypted_key_is_an_error(state: Path, now: datetime, passphrase: Path) -> None:
    """The CA's damaged key stops the start.

    A pair that is encrypted without a known passphrase is not replaced.
    """
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
    """Signal that the simulated process has died."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return a function that lets the process die after a number of file operations."""
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
def test_crash_at_any_point_of_a_passphrase_change_loses_no_key(
    way: str, tmp_path: Path, state: Path, now: datetime, passphrase: Path, dying: Callable[[int], None]
) -> None:
    """This covers encryption, decryption and a new passphrase. A repeated command finishes the work."""
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
            assert [PairFiles(state, seal).load(holder) for holder in HOLDERS] == expected[2:]
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


def test_key_behind_a_symbolic_link_stays_in_plain_text(
    tmp_path: Path, state: Path, now: datetime, passphrase: Path
) -> None:
    """The target belongs to another program. The key is used unchanged, and a message says so."""
    with opened(state, DOMAIN, now):
        pass
    (state / "ca" / "ca.key").rename(tmp_path / "ca.key")
    (state / "ca" / "ca.key").symlink_to(tmp_path / "ca.key")
    with capture_logs() as logs:
        assert keys(state, now, passphrase)
    assert "private key unchanged: its file is a symbolic link" in str(logs)
    assert b"PRIVATE KEY" in (tmp_path / "ca.key").read_bytes()


def test_passphrase_file_readable_by_others_is_used_and_reported(
    state: Path, now: datetime, passphrase: Path
) -> None:
    """A mounted Secret may have such a mode."""
    passphrase.chmod(0o644)
    with capture_logs() as logs:
        assert keys(state, now, passphrase)
    assert "can be read by other users" in str(logs)


def test_repr_of_a_seal_contains_no_key_or_passphrase() -> None:
    """A repr may end up in logs."""
    key = new_data_key()
    for shown in (repr(Seal(key)), str(Seal(key)), repr(wrapped(key, b"correct horse"))):
        assert planted.seen(shown.encode(), {"data key": key, "passphrase": b"correct horse"}) == []


def test_directory_without_a_passphrase_has_no_seal(state: Path, now: datetime) -> None:
    """Without the setting, the opened directory encrypts no key."""
    with opened(state, DOMAIN, now) as authority:
        assert isinstance(authority, AuthorityWithLedger)
        assert not authority.seal.encrypts
    assert not (state / "seal.json").exists()
