"""Tests of state directories that other users can access, which are refused by default."""

import os
import stat
from pathlib import Path

import pytest

from tests.tools.program import Program

MEANT = "or set shared_state (MESHWRIGHT_SHARED_STATE=true) if other users may have access"
SECRETS = [
    "ca/ca.key",
    "ads/certificate.pem",
    "services/shop/store/certificate.pem",
    "ledger.sqlite",
    "ledger.sqlite-journal",
    "server.lock",
]


def refusals(program: Program) -> set[str]:
    """Return the messages with which the server and both commands refuse."""
    commands = (program.issue("one", program.files / "x"), program.revoke("abc"))
    assert [(status, out) for status, out, _ in commands] == [(2, "")] * 2
    return {program.refused(), *(text for _, _, text in commands)}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277])
def test_files_and_directories_are_private_under_every_umask(program: Program, umask: int) -> None:
    """Directories have mode 0700 and files 0600, including the issued key."""
    before = os.umask(umask)
    try:
        program.issued("one")
        server = program.serve()
        assert program.served(server, "one")
        server.stop()
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (program.state, *program.state.rglob("*"))}
    assert {path: mode for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}
    assert {str(path.relative_to(program.state)) for path in modes} >= set(SECRETS)
    assert stat.S_IMODE((program.files / "one" / "proxy.key").stat().st_mode) == 0o600


def test_directory_accessible_to_others_is_refused_unless_shared(used: Program) -> None:
    """The message has the path, the mode and the remedy. `shared_state` permits the access with a warning."""
    used.state.chmod(0o750)
    state = used.state
    assert refusals(used) == {
        f"{state} can be read and entered by other users (its mode is 0750): chmod 700 {state}, {MEANT}"
    }
    server = used.serve("--set", "shared_state=true")
    assert [item["what"] for item in server.said("state directory is accessible to other users")] == [
        (f"{state} can be read and entered by other users (its mode is 0750): chmod 700 {state}")
    ]
    server.stop()
    used.environment["MESHWRIGHT_SHARED_STATE"] = "true"
    used.serve().stop()
    used.issued("one")
    del used.environment["MESHWRIGHT_SHARED_STATE"]
    state.chmod(0o700)
    server = used.serve()
    assert server.said("state directory is accessible to other users") == []


def test_file_readable_by_others_is_refused(used: Program) -> None:
    """Each secret file is checked, although the directory's mode already excludes other users."""
    server = used.serve()
    assert used.served(server, "one")
    server.stop()
    for name in SECRETS:
        path = used.state / name
        path.chmod(0o644)
        assert (
            used.refused()
            == f"{path} can be read by other users (its mode is 0644): chmod 600 {path}, {MEANT}"
        )
        path.chmod(0o600)
    used.serve().stop()


def test_key_behind_a_symbolic_link_is_checked_at_its_target(used: Program) -> None:
    """A mounted Secret is a link. A dangling link is a missing key, and no new key is made."""
    key, elsewhere = used.state / "ca" / "ca.key", used.files / "key"
    key.rename(elsewhere)
    key.symlink_to(elsewhere)
    used.serve().stop()
    elsewhere.chmod(0o640)
    assert f"{key} can be read by other users (its mode is 0640): chmod 600 {key}" in used.refused()
    elsewhere.unlink()
    assert used.refused().startswith(f"{key} is a symbolic link to a missing file; ")
    (used.state / "ca").rename(used.files / "ca")
    (used.state / "ca").symlink_to(used.files / "nowhere")
    assert used.refused() == f"{used.state / 'ca'} is a symbolic link to a missing directory"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_directory_of_another_user_is_refused(used: Program) -> None:
    """The owner could not read files of root, and root would trust files of the owner."""
    os.chown(used.state, 65534, 65534)
    assert refusals(used) == {
        f"{used.state} belongs to user 65534, but the program runs as user 0: chown 0 {used.state}, {MEANT}"
    }


def test_several_accessible_files_are_counted(used: Program) -> None:
    """The message names the first file and the number of the others."""
    for path in used.state.rglob("*"):
        path.chmod(path.stat().st_mode | 0o040)
    assert " (the same holds for " in used.refused()


def test_ca_certificate_may_be_readable_but_not_writable_by_others(used: Program) -> None:
    """The certificate is public, but whoever replaces it becomes trusted."""
    path: Path = used.state / "ca" / "ca.pem"
    path.chmod(0o644)
    used.serve().stop()
    path.chmod(0o664)
    assert (
        used.refused()
        == f"{path} can be written by other users (its mode is 0664): chmod 644 {path}, {MEANT}"
    )
