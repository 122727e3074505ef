"""Tests of commands on a state directory with encrypted private keys, without a server."""

from pathlib import Path

import pytest

from meshwright.cli.main import app
from tests.tools.command_runner import CliRunner, Result

pytestmark = pytest.mark.usefixtures("cheap_passphrases")
ISSUE = ("certs", "issue-proxy", "--uuid", "u1", "--service", "shop", "--namespace", "default", "--anyway")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state directory with one issued certificate and plain keys."""
    path = tmp_path / "state"
    assert ran(*ISSUE, "--state", str(path), "--out", str(tmp_path / "out")).exit_code == 0
    return path


def ran(*words: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, words)


def passphrase(path: Path, words: str) -> str:
    """Write a passphrase to a private file; return its path."""
    path.write_text(words)
    path.chmod(0o600)
    return str(path)


def plain(state: Path) -> bool:
    """Return whether the CA's key is stored in plain text."""
    return b"PRIVATE KEY" in (state / "ca" / "ca.key").read_bytes()


def test_keys_are_sealed_rekeyed_and_unsealed(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command opens sealed keys with the passphrase from the environment or the config file.

    A wrong passphrase is an error.
    """
    first, second = (passphrase(tmp_path / item, f"words {item}\n") for item in ("first", "second"))
    where = ("--state", str(state))
    sealed = ran("certs", "seal", *where, "--key-passphrase-file", first)
    assert "private keys encrypted" in sealed.stderr
    assert "info" not in sealed.stdout
    assert (sealed.exit_code, plain(state)) == (0, False)
    assert "start the server with key_passphrase_file from now on" in sealed.output
    assert (
        "set key_passphrase_file (MESHWRIGHT_KEY_PASSPHRASE_FILE) to the file with the passphrase"
    ) in str(ran("certs", "list", *where).output)
    monkeypatch.setenv("MESHWRIGHT_KEY_PASSPHRASE_FILE", second)
    for words in (("list",), ("token", "list"), ("revoke", "u1.shop.default"), ("unseal",)):
        output = ran("certs", *words, *where).output
        assert f"the passphrase in {second} does not decrypt the private keys in" in output
        assert "words second" not in output
    changed = ("certs", "seal", *where, "--key-passphrase-file", first, "--new-passphrase-file", second)
    assert ran(*changed).exit_code == 0
    assert ran("certs", "list", *where).exit_code == 0
    assert ran(*ISSUE, *where, "--out", str(tmp_path / "more")).exit_code == 0
    monkeypatch.delenv("MESHWRIGHT_KEY_PASSPHRASE_FILE")
    config = tmp_path / "config.yaml"
    config.write_text(f"key_passphrase_file: {second}\n")
    monkeypatch.setenv("MESHWRIGHT_CONFIG", str(config))
    assert ran("certs", "token", "list", *where).exit_code == 0
    assert ran("certs", "unseal", *where).exit_code == 0
    assert plain(state)
    monkeypatch.delenv("MESHWRIGHT_CONFIG")
    assert ran("certs", "list", *where).exit_code == 0


def test_impossible_sealing_is_an_error_with_its_reason(state: Path, tmp_path: Path) -> None:
    """The passphrase is missing, the keys are not encrypted, or the directory is not a state directory."""
    words = passphrase(tmp_path / "words", "words")
    messages = ("--state", str(state), "--key-passphrase-file", words)
    assert (
        "the passphrase is missing: give its file with --key-passphrase-file"
        in ran("certs", "seal", "--state", str(state)).output
    )
    assert "are not encrypted" in ran("certs", "unseal", *messages).output
    assert "no passphrase to change" in str(
        ran("certs", "seal", *messages, "--new-passphrase-file", words).output
    )
    nowhere = ("--state", str(tmp_path / "none"), "--key-passphrase-file", words)
    assert "so it is not a state directory" in ran("certs", "seal", *nowhere).output
    assert not (tmp_path / "none").exists()
