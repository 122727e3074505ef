"""A change of the root in a state directory: wherever a process dies, the next opening finds it whole."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog

from certs.errors import StateError
from certs.issuers.root import fingerprint_in, open_root
from certs.roots import rotation_file as kept
from certs.roots.rotation import Rotation, Stage, aborted, advanced, without
from certs.state import files
from meshwright.mesh.names import TrustDomain

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DOMAIN = TrustDomain("mesh.example")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state directory with a CA, whose first proxy certificate is noted."""
    open_root(tmp_path, DOMAIN, NOW)
    (tmp_path / "ca" / "first-proxy").write_text("0a\n")
    return tmp_path


def test_a_change_is_kept_from_its_beginning_to_its_end(state: Path) -> None:
    """`ca/` is always who signs, with the note of the first proxy; at the end nothing is left."""
    old = fingerprint_in(state / "ca")
    first = kept.begin(state, DOMAIN, NOW)
    assert (first.stage, first.signer) == (Stage.TRUSTING, old)
    assert kept.recovered(state) == first
    assert fingerprint_in(state / "ca.other") == first.other != old
    assert kept.other_roots(state) == (state / "ca.other" / "ca.pem").read_bytes()
    second = without(advanced(first, NOW) or first, ["a.b.c"], NOW)
    kept.keep(state, second)
    assert kept.recovered(state) == second
    assert (fingerprint_in(state / "ca"), fingerprint_in(state / "ca.other")) == (first.other, old)
    assert (state / "ca" / "first-proxy").read_text() == "0a\n"
    kept.end(state)
    assert kept.recovered(state) is None
    assert sorted(path.name for path in state.iterdir() if path.is_dir()) == ["ca"]


class Died(Exception):
    """The process ends here."""


@pytest.mark.parametrize("number", range(12))
def test_a_process_that_dies_at_any_point_of_a_step(
    state: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is as before the step or as after it, and then the step can be taken."""
    first = kept.begin(state, DOMAIN, NOW)
    second = advanced(first, NOW)
    assert second is not None
    with monkeypatch.context() as patch:
        _dies_at(number, patch)
        try:
            kept.keep(state, second)
        except Died:
            died = True
        else:
            died = False
    found = kept.recovered(state)
    assert found in (first, second)
    assert found is not None
    assert fingerprint_in(state / "ca") == found.signer
    assert fingerprint_in(state / "ca.other") == found.other
    assert (state / "ca" / "first-proxy").exists()
    assert died or found == second
    kept.keep(state, second)
    assert fingerprint_in(state / "ca") == second.signer


@pytest.mark.parametrize("number", range(8))
def test_a_process_that_dies_in_the_beginning_or_at_the_end(
    state: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a change, or none and nothing left of it."""
    steps: list[Callable[[], object]] = [lambda: kept.begin(state, DOMAIN, NOW), lambda: kept.end(state)]
    left_before = 0
    for step in steps:
        with monkeypatch.context() as patch:
            _dies_at(number, patch)
            with contextlib.suppress(Died):
                step()
        found = kept.recovered(state)
        assert (found is not None) == (state / "ca.other").exists()
        if step is steps[1]:  # what a change has left behind is no CA any more
            assert len(list(state.glob("ca.other.lost-*"))) == left_before
        left_before = len(list(state.glob("ca.other.lost-*")))
        assert fingerprint_in(state / "ca")
        assert (state / "ca" / "first-proxy").exists()


@pytest.mark.parametrize("number", range(3))
def test_a_step_whose_folders_cannot_follow_is_not_taken(
    state: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a folder that is a mount: then all is as before, and a server starts with it."""
    first = kept.begin(state, DOMAIN, NOW)
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
            kept.keep(state, second)
    assert kept.recovered(state) == first
    assert fingerprint_in(state / "ca") == first.signer
    assert fingerprint_in(state / "ca.other") == first.other
    assert not (state / "ca.moving").exists()
    assert (state / "ca" / "first-proxy").exists()


def test_a_step_of_which_the_disk_does_not_say_that_it_has_it_is_not_taken(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asked for it is told that it failed: then no later start may go on with it."""
    first = kept.begin(state, DOMAIN, NOW)
    failures, real = [OSError(errno.EIO, os.strerror(errno.EIO))], files.sync_directory

    def failing(path: Path) -> None:
        if failures:
            raise failures.pop()
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "sync_directory", failing)
        with pytest.raises(StateError, match=r"rotation\.json cannot be written: Input/output error"):
            kept.keep(state, aborted(first, NOW))
    assert kept.recovered(state) == first


def test_a_ca_that_is_a_mount_is_not_changed(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said before anything is made: the kernel would refuse the renames later."""
    before = sorted(state.iterdir())
    monkeypatch.setattr(Path, "is_mount", lambda path: path == state / "ca")
    with pytest.raises(
        StateError, match="ca is a mount point, which cannot be swapped with the folder of another root"
    ):
        kept.begin(state, DOMAIN, NOW)
    assert sorted(state.iterdir()) == before


def test_a_ca_that_is_elsewhere_by_a_link(state: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Links change places as folders do; at the end its key is gone, and a server starts."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "ca"
    (state / "ca").rename(elsewhere)
    (state / "ca").symlink_to(elsewhere)
    second = advanced(kept.begin(state, DOMAIN, NOW), NOW)
    assert second is not None
    kept.keep(state, second)
    assert (state / "ca.other").is_symlink()
    kept.end(state)
    assert kept.recovered(state) is None
    assert not (state / "ca.other").is_symlink()
    assert not (elsewhere / "ca.key").exists()
    assert fingerprint_in(state / "ca") == second.signer


def _dies_at(number: int, patch: pytest.MonkeyPatch) -> None:
    """Have the process die before its so-manieth call that changes the file system."""
    left = number

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            nonlocal left
            if left == 0:
                raise Died
            left -= 1
            return real(*args, **more)

        return call

    for owner, name in ((Path, "rename"), (Path, "replace"), (Path, "unlink"), (os, "rename"), (os, "fsync")):
        patch.setattr(owner, name, dying(getattr(owner, name)))
    patch.setattr(shutil, "rmtree", dying(shutil.rmtree))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"stage": "x"}', "null", '"a"'])
def test_a_file_that_nobody_wrote(state: Path, text: str) -> None:
    """It is said, and nothing is removed."""
    kept.begin(state, DOMAIN, NOW)
    (state / kept.FILE).write_text(text)
    with pytest.raises(StateError, match=r"rotation\.json is damaged"):
        kept.recovered(state)
    assert (state / "ca.other" / "ca.key").exists()


def test_roots_that_are_others(state: Path) -> None:
    """Somebody has put back `ca/` alone from a backup."""
    rotation: Rotation = kept.begin(state, DOMAIN, NOW)
    shutil.rmtree(state / "ca")
    open_root(state, DOMAIN, NOW)
    with pytest.raises(StateError, match=f"does not have the root {rotation.signer[:16]}"):
        kept.recovered(state)


def test_a_ca_whose_change_is_lost_is_not_removed(state: Path) -> None:
    """Somebody has removed `rotation.json`: each CA that would be gone stands aside, and it is said where."""
    keys = []
    for number in (1, 2):
        kept.begin(state, DOMAIN, NOW)
        keys.append((state / "ca.other" / "ca.key").read_bytes())
        (state / kept.FILE).unlink()
        with structlog.testing.capture_logs() as logs:
            assert kept.recovered(state) is None
        aside = state / f"ca.other.lost-{number}"
        (said,) = logs
        assert (said["log_level"], said["path"]) == ("warning", str(aside))
        assert not (state / "ca.other").exists()
    assert [(state / f"ca.other.lost-{each}" / "ca.key").read_bytes() for each in (1, 2)] == keys


def test_a_ca_that_somebody_has_put_there_is_not_removed_either(state: Path) -> None:
    """A change begins beside it."""
    shutil.copytree(state / "ca", state / "ca.other")
    key = (state / "ca" / "ca.key").read_bytes()
    kept.begin(state, DOMAIN, NOW)
    assert (state / "ca.other.lost-1" / "ca.key").read_bytes() == key
