"""Tests of signatures with OpenSSH's own `ssh-keygen`, and of keys that cannot sign."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.deadline import HANG_SECONDS
from tools.release.signatures import SigningError, fingerprint, sign

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
SUMS = b"e3b0c442  meshwright-0.2.0.tgz\n"
REMEDY = (
    ". Name a private key in OpenSSH's format, made for example with"
    " `ssh-keygen -t ed25519 -f FILE`, or the .pub file of a key in ssh-agent"
)


def _key(folder: Path, passphrase: str = "") -> Path:
    path = folder / "key"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "release", "-f", str(path)], check=True
    )
    return path


def _verify(folder: Path, key: Path, content: bytes, namespace: str = "meshwright-release") -> int:
    """Verify as docs/extend/releasing.md shows it; return the exit status."""
    (folder / "allowed_signers").write_text(f"maintainer@mesh.example {key.with_suffix('.pub').read_text()}")
    words = ("-Y", "verify", "-f", "allowed_signers", "-I", "maintainer@mesh.example", "-n", namespace)
    return subprocess.run(
        ["ssh-keygen", *words, "-s", "SHA256SUMS.sig"],
        cwd=folder,
        input=content,
        capture_output=True,
        check=False,
    ).returncode


def test_signature_is_verified_by_ssh_keygen(tmp_path: Path) -> None:
    """The signature holds for these bytes and this purpose alone."""
    key = _key(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    signatures = sign({"SHA256SUMS": SUMS, "bill.json": b"{}"}, key, scratch)
    assert list(signatures) == ["SHA256SUMS.sig", "bill.json.sig"]
    (tmp_path / "SHA256SUMS.sig").write_bytes(signatures["SHA256SUMS.sig"])
    assert _verify(tmp_path, key, SUMS) == 0
    assert _verify(tmp_path, key, SUMS + b"\n") != 0
    assert _verify(tmp_path, key, SUMS, "git") != 0


def test_fingerprint_is_the_one_of_the_public_key(tmp_path: Path) -> None:
    """Private and public key have the same fingerprint, with which users compare."""
    key = _key(tmp_path)
    assert fingerprint(key) == fingerprint(key.with_suffix(".pub"))
    assert fingerprint(key).startswith("SHA256:")


def test_key_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    """A folder is no key either."""
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(SigningError) as raised:
            fingerprint(path)
        assert str(raised.value) == f"SIGNING_KEY: {path} is not a file{REMEDY}"


def test_content_of_a_bad_key_is_never_in_the_error(tmp_path: Path) -> None:
    """A file of another form may still be a secret."""
    path = tmp_path / "key"
    path.write_text("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
    path.chmod(0o600)
    with pytest.raises(SigningError) as raised:
        fingerprint(path)
    assert str(raised.value) == (
        f"SIGNING_KEY: {path} cannot sign: ssh-keygen: {path} is not a key file{REMEDY}"
    )


def test_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """OpenSSH ignores such a key, and its reason is in the error."""
    key = _key(tmp_path)
    key.chmod(0o644)
    key.with_suffix(".pub").unlink()
    with pytest.raises(SigningError, match=r"ssh-keygen: .*Permissions 0644 for .* are too open"):
        sign({"SHA256SUMS": SUMS}, key, tmp_path)


def test_encrypted_key_without_a_terminal_is_refused(tmp_path: Path) -> None:
    """A build without a person ends with the reason, and does not wait for a passphrase."""
    key = _key(tmp_path, "correct horse")
    program = (
        "import sys\nfrom pathlib import Path\nfrom tools.release.signatures import SigningError, sign\n"
        "try:\n    sign({'SHA256SUMS': b'x'}, Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except SigningError as error:\n    sys.exit(str(error))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(key), str(tmp_path)],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "incorrect passphrase supplied to decrypt private key" in done.stderr
    assert REMEDY in done.stderr
