"""Tests of the files of the authority: the formats of earlier versions, their modes, and their places."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from certs.authority_files.store import AuthorityFiles
from certs.errors import StateError
from certs.issuers.root import new_root
from certs.issuers.stored_ca import StoredCa, Unreadable
from certs.issuers.succession import FormerIssuer, Succession
from certs.keys.bundle import TrustBundle
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_state import AuthorityState
from certs.roots.authority_store import changed
from certs.roots.first_proxy import FirstProxy
from certs.roots.rotation import Fingerprint, Rotation, Stage
from certs.state.sealing import Seal, new_data_key
from meshwright.mesh.names import Namespace, SecretName, TrustDomain

NOW: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
OLD, NEW = new_root(TrustDomain("mesh.example"), NOW), new_root(TrustDomain("mesh.example"), NOW)
CA, OTHER = StoredCa.of(OLD), StoredCa.of(NEW)
ROOT, OTHER_ROOT = CA.trusted.decode("ascii"), OTHER.trusted.decode("ascii")
"""Both roots as PEM."""
ROTATION: Final = f"""{{
  "stage": "trusting",
  "signer": "{OLD.fingerprint}",
  "other": "{NEW.fingerprint}",
  "began": "2026-11-22T12:00:00+00:00",
  "since": "2026-11-22T12:00:00+00:00",
  "aborted": false,
  "given_up": {{
    "one.cart.shop": "2026-11-22T12:00:00+00:00"
  }}
}}
"""
ISSUERS: Final = f"""{{
 "issuer": "vault:a",
 "roots": {'"' + ROOT.replace(chr(10), chr(92) + "n") + '"'},
 "settled": "2026-11-22T12:01:00+00:00",
 "heard": false,
 "formers": [
  {{
   "roots": {'"' + OTHER_ROOT.replace(chr(10), chr(92) + "n") + '"'},
   "until": "2026-11-23T12:00:00+00:00"
  }}
 ]
}}
"""
FILES: Final = {
    "ca/ca.pem": ROOT,
    "ca.other/ca.pem": OTHER_ROOT,
    "ca/first-proxy": "3f9a02\n",
    "rotation.json": ROTATION,
    "issuer.json": ISSUERS,
    "authority.json": ISSUERS.replace("vault:a", "files"),
    # In the order of the namespaces; the order of the texts is another.
    "declared-roots.json": '{\n  "a/root": "1f",\n  "a-b/root": "2f"\n}\n',
}
"""Files as earlier versions have written them, without the keys."""
FORMER: Final = FormerIssuer(TrustBundle.from_pems([OTHER.trusted]), NOW + timedelta(days=1))


def _issuers(name: str) -> Succession:
    """Return the issuers of a role."""
    own, settled = TrustBundle.from_pems([CA.trusted]), NOW + timedelta(minutes=1)
    return Succession(name, own, settled, (FORMER,), is_acknowledged=False)


STATE: Final = AuthorityState(
    CA,
    OTHER,
    Rotation(
        Stage.TRUSTING,
        Fingerprint(OLD.fingerprint),
        Fingerprint(NEW.fingerprint),
        NOW,
        NOW,
        given_up=MappingProxyType({"one.cart.shop": NOW}),
    ),
    _issuers("vault:a"),
    _issuers("files"),
    "3f9a02",
    {
        SecretName(Namespace("a-b"), "root"): Fingerprint("2f"),
        SecretName(Namespace("a"), "root"): Fingerprint("1f"),
    },
)


def _write_files(state: Path) -> None:
    """Write a state directory as an earlier version did."""
    for name, text in FILES.items():
        path = state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder, ca in (("ca", CA), ("ca.other", OTHER)):
        assert ca.key is not None
        assert not isinstance(ca.key, Unreadable)
        (state / folder / "ca.key").write_bytes(ca.key.reveal())


def test_files_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    """Every field has its value, and reading changes no file."""
    _write_files(tmp_path)
    before = {path: path.stat() for path in tmp_path.rglob("*")}
    assert AuthorityFiles(tmp_path).read().state == STATE
    assert {path: path.stat() for path in tmp_path.rglob("*")} == before


def test_files_are_written_as_by_an_earlier_version(tmp_path: Path) -> None:
    """The content is the same byte for byte, and only the owner has access."""
    state = tmp_path / "state"
    store = AuthorityFiles(state)
    parts = {name: getattr(STATE, name) for name in ("service_issuers", "channel_issuers", "declared_roots")}
    changed(store, lambda _: AuthorityState(CA))
    changed(store, lambda _: AuthorityState(CA, first_proxy="3f9a02", **parts))
    changed(store, lambda _: STATE)
    keys = {"ca/ca.key", "ca.other/ca.key", ".ca.lock"}
    paths = {str(path.relative_to(state)): path for path in state.rglob("*") if path.is_file()}
    assert {name: path.read_text() for name, path in paths.items() if name not in keys} == FILES
    assert paths.keys() == FILES.keys() | keys
    modes = {stat.S_IMODE(path.stat().st_mode) for path in paths.values()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in (state, state / "ca", state / "ca.other")}
    assert (modes, folders) == ({0o600}, {0o700})


@pytest.mark.parametrize("is_foreign", [False, True])
def test_first_proxy_is_recorded_beside_the_ca_or_without_a_ca(tmp_path: Path, *, is_foreign: bool) -> None:
    """The CA of another program has no folder in the state directory."""
    (tmp_path / "ca").mkdir()
    store = AuthorityFiles(tmp_path, is_foreign=is_foreign)
    changed(store, lambda _: AuthorityState(first_proxy="0a"))
    (path,) = (item for item in tmp_path.rglob("*") if item.is_file())
    assert path == (tmp_path if is_foreign else tmp_path / "ca") / "first-proxy"
    assert FirstProxy(store).read() == "0a"
    FirstProxy(store).forget()
    assert not path.exists()
    FirstProxy(store).forget()


def test_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    """Another field can still be read."""
    _write_files(tmp_path)
    for name in ("rotation.json", "first-proxy"):
        (tmp_path / ("ca" if name == "first-proxy" else "") / name).unlink()
        (tmp_path / ("ca" if name == "first-proxy" else "") / name).mkdir()
    state = AuthorityFiles(tmp_path).read().state
    assert (state.rotation, state.first_proxy) == (
        Unreadable(f"{tmp_path}/rotation.json cannot be read: Is a directory"),
        Unreadable(f"{tmp_path}/ca/first-proxy cannot be read: Is a directory"),
    )
    assert (state.ca, state.declared_roots) == (STATE.ca, STATE.declared_roots)


@pytest.mark.parametrize("gone", [("ca.pem", "ca.key"), ("ca.pem",), ("ca.key",)])
def test_ca_behind_broken_links_is_a_ca(tmp_path: Path, gone: tuple[str, ...]) -> None:
    """A start reports the first link, and does not create another CA in place of the missing one."""
    _write_files(tmp_path)
    for name in ("rotation.json", "ca.other/ca.pem", "ca.other/ca.key", *(f"ca/{name}" for name in gone)):
        (tmp_path / name).unlink()
    for name in gone:
        (tmp_path / "ca" / name).symlink_to(tmp_path / "volume" / name)
    before = sorted(tmp_path.rglob("*"))
    words = f"^{tmp_path}/ca/{gone[0]} is a symbolic link to a missing file; restore the right files, or "
    with pytest.raises(StateError, match=words):
        ChangingAuthority(AuthorityFiles(tmp_path), TrustDomain("mesh.example"), NOW)
    created = {tmp_path / ".ca.lock"}
    assert set(tmp_path.rglob("*")) - created == set(before) - {tmp_path / "ca.other"}


def test_sealed_key_without_its_passphrase_is_unreadable(tmp_path: Path) -> None:
    """All other content can be read, for example by a command that has no passphrase."""
    changed(AuthorityFiles(tmp_path, Seal(new_data_key())), lambda _: AuthorityState(CA))
    ca = AuthorityFiles(tmp_path).read().state.ca
    assert ca == StoredCa(
        CA.certificate,
        Unreadable(
            f"CA key {tmp_path}/ca/ca.key cannot be used: a private key is encrypted, but a passphrase "
            "is not set"
        ),
    )


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rotation.json", ROTATION.replace("trusting", "paused"), "field stage"),
        ("rotation.json", ROTATION.replace('"since"', '"after"'), "field since is missing"),
        ("rotation.json", ROTATION.replace("12:00:00+00:00", "noon"), "field began"),
        ("issuer.json", ISSUERS.replace("12:01:00+00:00", "12:01:00"), "field settled"),
        ("issuer.json", ISSUERS.replace('"roots"', '"root"', 1), "field roots is missing"),
        ("authority.json", ISSUERS.replace('"until"', '"after"'), "field formers is "),
        ("declared-roots.json", '{"root": "1f"}', "root is not of the form NAMESPACE/NAME"),
        ("declared-roots.json", "[]", "it must be a JSON object, not []"),
    ],
)
def test_damaged_field_of_a_file_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    """The message has the file and the field, so that it can be repaired."""
    _write_files(tmp_path)
    (tmp_path / name).write_text(text)
    state = AuthorityFiles(tmp_path).read().state
    fields = (state.rotation, state.service_issuers, state.channel_issuers, state.declared_roots)
    (reason,) = (field.reason for field in fields if isinstance(field, Unreadable))
    assert reason.startswith(f"{tmp_path / name} is damaged: ")
    assert words in reason
