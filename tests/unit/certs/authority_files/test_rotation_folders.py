"""Tests of a rotation in a state directory, which is consistent after a crash at any point."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog

from certs.authority_files.store import AuthorityFiles
from certs.errors import StateError
from certs.issuers.ca_folder import fingerprint_in
from certs.roots.rotation import Rotation, Stage, aborted, advanced, without
from certs.state import files
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority
from tests.unit.certs.authority_files.steps import Died, begin, dies_at, recovered, step

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DOMAIN = TrustDomain("mesh.example")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state directory with a CA and the note of its first proxy certificate."""
    own_authority(tmp_path, DOMAIN, NOW)
    (tmp_path / "ca" / "first-proxy").write_text("0a\n")
    return tmp_path


def test_rotation_is_stored_from_its_beginning_to_its_end(state: Path) -> None:
    """The folder `ca/` is always the one that signs, and has the note of the first proxy.

    At the end only this folder is left.
    """
    old = fingerprint_in(state / "ca")
    first = begin(state, DOMAIN, NOW)
    assert (first.stage, first.signer) == (Stage.TRUSTING, old)
    assert recovered(state) == first
    assert fingerprint_in(state / "ca.other") == first.other != old
    other = AuthorityFiles(state).read().state.other
    assert other is not None
    assert other.trusted == (state / "ca.other" / "ca.pem").read_bytes()
    second = without(advanced(first, NOW) or first, ["a.b.c"], NOW)
    step(state, second)
    assert recovered(state) == second
    assert (fingerprint_in(state / "ca"), fingerprint_in(state / "ca.other")) == (first.other, old)
    assert (state / "ca" / "first-proxy").read_text() == "0a\n"
    step(state, None)
    assert recovered(state) is None
    assert sorted(path.name for path in state.iterdir() if path.is_dir()) == ["ca"]


@pytest.mark.parametrize("number", range(12))
def test_crash_at_any_point_of_a_step_leaves_the_state_before_or_after_it(
    state: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step can be repeated after the crash."""
    first = begin(state, DOMAIN, NOW)
    second = advanced(first, NOW)
    assert second is not None
    with monkeypatch.context() as patch:
        dies_at(number, patch)
        try:
            step(state, second)
        except Died:
            died = True
        else:
            died = False
    rotation = recovered(state)
    assert rotation in (first, second)
    assert rotation is not None
    assert fingerprint_in(state / "ca") == rotation.signer
    assert fingerprint_in(state / "ca.other") == rotation.other
    assert (state / "ca" / "first-proxy").exists()
    assert died or rotation == second
    step(state, second)
    assert fingerprint_in(state / "ca") == second.signer


@pytest.mark.parametrize("number", range(8))
def test_crash_at_the_beginning_or_end_leaves_a_rotation_or_no_trace_of_it(
    state: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CA itself is never lost."""
    steps: list[Callable[[], object]] = [lambda: begin(state, DOMAIN, NOW), lambda: step(state, None)]
    left_before = 0
    for act in steps:
        with monkeypatch.context() as patch:
            dies_at(number, patch)
            with contextlib.suppress(Died):
                act()
        rotation = recovered(state)
        assert (rotation is not None) == (state / "ca.other").exists()
        if act is steps[1]:  # the remains of a finished rotation do not count as a CA
            assert len(list(state.glob("ca.other.lost-*"))) == left_before
        left_before = len(list(state.glob("ca.other.lost-*")))
        assert fingerprint_in(state / "ca")
        assert (state / "ca" / "first-proxy").exists()


@pytest.mark.parametrize("number", range(3))
def test_step_whose_folders_cannot_be_swapped_is_undone(
    state: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder may be a mount, for example. The state is as before, and a server can start with it."""
    first = begin(state, DOMAIN, NOW)
    second = advanced(first, NOW)
    assert second is not None
    left, real = number, Path.rename

    def refused(path: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if left == -1:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return real(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refused)
        with pytest.raises(StateError, match=r"cannot swap the roots in .*: Device or resource busy"):
            step(state, second)
    assert recovered(state) == first
    assert fingerprint_in(state / "ca") == first.signer
    assert fingerprint_in(state / "ca.other") == first.other
    assert not (state / "ca.moving").exists()
    assert (state / "ca" / "first-proxy").exists()


def test_step_that_the_disk_does_not_confirm_is_not_taken(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator gets an error, so a later start must not continue with the step."""
    first = begin(state, DOMAIN, NOW)
    failures, real = [OSError(errno.EIO, os.strerror(errno.EIO))], files.sync_directory

    def failing(path: Path) -> None:
        if failures:
            raise failures.pop()
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "sync_directory", failing)
        with pytest.raises(StateError, match=r"rotation\.json cannot be written: Input/output error"):
            step(state, aborted(first, NOW))
    assert recovered(state) == first


def test_rotation_that_the_disk_does_not_confirm_has_not_begun(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator gets an error, so a later start must not find a rotation. A second command begins one."""
    real = files.sync_directory

    def failing(path: Path) -> None:
        if (path / "rotation.json").exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "sync_directory", failing)
        with pytest.raises(StateError, match=r"rotation\.json cannot be written: Input/output error"):
            begin(state, DOMAIN, NOW)
    assert AuthorityFiles(state).read().state.rotation is None
    rotation = begin(state, DOMAIN, NOW)
    assert recovered(state) == rotation


def test_rotation_of_a_ca_in_a_mount_point_is_refused_at_the_beginning(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel would refuse to rename the folder in a later step."""
    before = sorted(state.iterdir())
    monkeypatch.setattr(Path, "is_mount", lambda path: path == state / "ca")
    with pytest.raises(
        StateError, match="ca is a mount point, which cannot be swapped with the folder of another root"
    ):
        begin(state, DOMAIN, NOW)
    assert sorted(state.iterdir()) == before


def test_ca_folder_behind_a_link_can_be_rotated(
    state: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Links are swapped as folders are. At the end the old key is deleted, and a server can start."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "ca"
    (state / "ca").rename(elsewhere)
    (state / "ca").symlink_to(elsewhere)
    second = advanced(begin(state, DOMAIN, NOW), NOW)
    assert second is not None
    step(state, second)
    assert (state / "ca.other").is_symlink()
    step(state, None)
    assert recovered(state) is None
    assert not (state / "ca.other").is_symlink()
    assert not (elsewhere / "ca.key").exists()
    assert fingerprint_in(state / "ca") == second.signer


def test_ca_folder_behind_a_broken_link_is_named_and_nothing_changes(state: Path) -> None:
    """The target may be on a volume that is not mounted; the start succeeds when it is back."""
    first = begin(state, DOMAIN, NOW)
    (state / "ca").rename(state / "volume")
    (state / "ca").symlink_to(state / "volume" / "missing")
    before = sorted(state.iterdir())
    with pytest.raises(StateError, match=f"^{state}/ca is a symbolic link to a missing directory$"):
        recovered(state)
    assert sorted(state.iterdir()) == before
    (state / "ca").unlink()
    (state / "ca").symlink_to(state / "volume")
    assert recovered(state) == first


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"stage": "x"}', "null", '"a"'])
def test_damaged_rotation_file_is_an_error_and_removes_no_key(state: Path, text: str) -> None:
    """The key of the other root may be needed after the file is restored."""
    begin(state, DOMAIN, NOW)
    (state / "rotation.json").write_text(text)
    with pytest.raises(StateError, match=r"rotation\.json is damaged"):
        recovered(state)
    assert (state / "ca.other" / "ca.key").exists()


def test_rotation_with_other_roots_than_recorded_is_an_error(
    state: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """This happens if `ca/` alone is restored from a backup."""
    rotation: Rotation = begin(state, DOMAIN, NOW)
    shutil.rmtree(state / "ca")
    backup = tmp_path_factory.mktemp("backup")
    own_authority(backup, DOMAIN, NOW)
    shutil.copytree(backup / "ca", state / "ca")
    with pytest.raises(StateError, match=f"does not have the root {rotation.signer[:16]}"):
        recovered(state)


def test_damaged_roots_of_the_other_ca_are_named(state: Path) -> None:
    """Without them its certificates could not be verified, so the server does not start."""
    begin(state, DOMAIN, NOW)
    (state / "ca.other" / "roots.pem").write_text("damaged\n")
    words = (
        f"^{state}/ca.other/roots.pem cannot be used: roots are not certificates in PEM; restore the right "
    )
    with pytest.raises(StateError, match=words):
        own_authority(state, DOMAIN, NOW)


def test_other_ca_is_moved_aside_when_the_rotation_file_is_missing(state: Path) -> None:
    """The key of each other CA is kept, and a warning has the path."""
    keys = []
    for number in (1, 2):
        begin(state, DOMAIN, NOW)
        keys.append((state / "ca.other" / "ca.key").read_bytes())
        (state / "rotation.json").unlink()
        with structlog.testing.capture_logs() as logs:
            assert recovered(state) is None
        aside = state / f"ca.other.lost-{number}"
        (answer,) = logs
        assert (answer["log_level"], answer["path"]) == ("warning", str(aside))
        assert not (state / "ca.other").exists()
    assert [(state / f"ca.other.lost-{item}" / "ca.key").read_bytes() for item in (1, 2)] == keys


def test_unknown_ca_in_place_of_the_other_root_is_moved_aside(state: Path) -> None:
    """A rotation can begin, and the key of the unknown CA is kept."""
    shutil.copytree(state / "ca", state / "ca.other")
    key = (state / "ca" / "ca.key").read_bytes()
    begin(state, DOMAIN, NOW)
    assert (state / "ca.other.lost-1" / "ca.key").read_bytes() == key
