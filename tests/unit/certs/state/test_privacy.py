"""Tests of the exposure of files to other users, by mode and owner, and of the suggested command."""

import stat
from pathlib import Path

import pytest

from certs.custody import LEDGER_FILE, REBUILDING_FILE
from certs.state.privacy import exposure, exposures

FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR
PATH = Path("/s/x")


@pytest.mark.parametrize(
    ("mode", "owner", "user", "public"),
    [
        (FILE | 0o600, 7, 7, False),
        (FILE | 0o400, 7, 7, False),
        (FILE | 0o600, 0, 7, False),
        (FILE | 0o644, 7, 7, True),
        (FOLDER | 0o700, 0, 0, False),
        (FOLDER | 0o2700, 7, 7, False),
    ],
)
def test_file_with_a_permitted_mode_and_owner_has_no_exposure(
    mode: int, owner: int, user: int, public: bool
) -> None:
    """Root can read every file, so a file of root is acceptable. A set-group-ID bit gives no rights."""
    assert exposure(PATH, mode, owner, user, public=public) == ""


@pytest.mark.parametrize(
    ("mode", "owner", "user", "public", "sentence"),
    [
        (FILE | 0o640, 7, 7, False, "can be read by other users (its mode is 0640): chmod 600 /s/x"),
        (FILE | 0o604, 7, 7, False, "can be read by other users (its mode is 0604): chmod 600 /s/x"),
        (FILE | 0o602, 0, 0, False, "can be written by other users (its mode is 0602): chmod 600 /s/x"),
        (
            FILE | 0o666,
            7,
            7,
            False,
            "can be read and written by other users (its mode is 0666): chmod 600 /s/x",
        ),
        (FILE | 0o664, 7, 7, True, "can be written by other users (its mode is 0664): chmod 644 /s/x"),
        (
            FOLDER | 0o755,
            7,
            7,
            False,
            "can be read and entered by other users (its mode is 0755): chmod 700 /s/x",
        ),
        (FOLDER | 0o701, 7, 7, False, "can be entered by other users (its mode is 0701): chmod 700 /s/x"),
        (
            FOLDER | 0o1777,
            7,
            7,
            False,
            "can be read and written and entered by other users (its mode is 1777): chmod 700 /s/x",
        ),
        (FILE | 0o600, 8, 7, False, "belongs to user 8, but the program runs as user 7: chown 7 /s/x"),
        (FILE | 0o600, 7, 0, False, "belongs to user 7, but the program runs as user 0: chown 0 /s/x"),
        (FILE | 0o644, 8, 7, True, "belongs to user 8, but the program runs as user 7: chown 7 /s/x"),
    ],
)
def test_exposure_names_the_access_and_the_command_to_correct_it(
    mode: int, owner: int, user: int, public: bool, sentence: str
) -> None:
    """The message has the mode or owner, and a chmod or chown command."""
    assert exposure(PATH, mode, owner, user, public=public) == f"/s/x {sentence}"


@pytest.mark.parametrize(
    "folder", ["ca", "ca.other", "ca.moving", ".ca.new", "ca.other.lost-1", "services/a/b"]
)
def test_exposed_key_is_reported_in_every_folder_with_keys(folder: str, tmp_path: Path) -> None:
    """This includes the temporary folders of a rotation."""
    tmp_path.chmod(0o700)
    (tmp_path / folder).mkdir(mode=0o700, parents=True)
    key = tmp_path / folder / "ca.key"
    key.touch(mode=0o600)
    for parent in (tmp_path / folder).parents:
        if parent.is_relative_to(tmp_path):
            parent.chmod(0o700)
    assert exposures(tmp_path) == ()
    key.chmod(0o640)
    assert exposures(tmp_path) == (f"{key} can be read by other users (its mode is 0640): chmod 600 {key}",)


@pytest.mark.parametrize("name", [LEDGER_FILE, f"{LEDGER_FILE}.lost-1", REBUILDING_FILE, "tokens.sqlite"])
def test_exposed_ledger_or_token_file_is_reported(name: str, tmp_path: Path) -> None:
    """A user who can write to the ledger, or to a file that becomes it, can admit any proxy."""
    tmp_path.chmod(0o700)
    file = tmp_path / name
    file.touch()
    file.chmod(0o620)
    assert exposures(tmp_path) == (
        f"{file} can be written by other users (its mode is 0620): chmod 600 {file}",
    )
