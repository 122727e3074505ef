"""Tests of commands with an encrypted proxy key at a terminal: no pass phrase prompt."""

import os
import pty
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from meshwright.guard import ROOT
from tests.unit.agent.issued_credentials import write_credentials

SECONDS = 60.0


def _at_a_terminal(folder: Path, *words: str) -> tuple[int, str]:
    """Run a command with a controlling terminal. Return its status and output."""
    ours, theirs = pty.openpty()
    # The program itself takes the terminal. A `preexec_fn` would run in a fork of this process, which crashes
    # if other tests have left threads of gRPC in it.
    takes_it = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    program = f"{takes_it}; from meshwright.guard import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "1000", "NO_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            status = -1
        seen = os.read(ours, 65536).decode()
    os.close(ours)
    return status, seen


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    """A folder with credentials whose key is encrypted."""
    write_credentials(tmp_path / "state", tmp_path / "credentials")
    (tmp_path / "credentials").chmod(0o700)
    path = tmp_path / "credentials" / "proxy.key"
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    form, by = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, by))
    return tmp_path


def test_agent_check_reports_an_encrypted_key_without_a_prompt(encrypted: Path) -> None:
    """The check fails with the reason and does not ask for a pass phrase."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"127.0.0.1:{server.getsockname()[1]}"
        status, seen = _at_a_terminal(
            encrypted, "agent", "check", "--before", "--ads", at, "--credentials", "credentials"
        )
    assert status == 1, seen
    assert "the private key is encrypted; it must be PEM without a passphrase" in seen
    assert "Enter PEM pass phrase" not in seen


def test_bootstrap_refuses_an_encrypted_or_foreign_key(encrypted: Path) -> None:
    """`bootstrap` fails with an encrypted key, without a prompt, and with a key of another certificate."""
    words = ("bootstrap", "--credentials", "credentials", "--ads", "127.0.0.1:1")
    status, seen = _at_a_terminal(encrypted, *words)
    assert (status, "the private key is encrypted; it must be PEM without a passphrase" in seen) == (
        2,
        True,
    ), seen
    write_credentials(encrypted / "other", encrypted / "others")
    (encrypted / "credentials" / "proxy.key").write_bytes((encrypted / "others" / "proxy.key").read_bytes())
    status, seen = _at_a_terminal(encrypted, *words)
    assert (status, "do not belong together: the private key does not belong" in seen) == (2, True), seen
