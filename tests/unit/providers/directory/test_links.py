"""Tests of symlinks and FIFOs in a directory of manifests, as a repository may contain them."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from meshwright.mesh.origins import InFile
from meshwright.providers.directory.file_form import UnreadableFile
from meshwright.providers.directory.files import read_content, read_named
from meshwright.providers.directory.source import DirectorySource
from meshwright.specs.codes import Code
from tests.meshes.texts import account, account_key

SECRET = "hvs.not-for-your-eyes"
LEADS_OUT = UnreadableFile(
    Code.UNREADABLE,
    "must not be a symlink to a place outside the directory of manifests; move the file into that directory",
)
NOT_REGULAR = UnreadableFile(Code.UNREADABLE, "must be a regular file")


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    """Create a directory of manifests beside a file with a secret."""
    (tmp_path / "secret").write_text(SECRET)
    path = tmp_path / "mesh"
    (path / "sub").mkdir(parents=True)
    (path / "real.txt").write_text("inside")
    return path


@pytest.mark.parametrize(
    ("links", "name"),
    [
        ({"x.yaml": "real.txt"}, "x.yaml"),
        ({"sub/x.yaml": "../real.txt"}, "sub/x.yaml"),
        ({"sub/x.yaml": "../sub/.././/real.txt"}, "sub/x.yaml"),
        ({"x.yaml": "y", "y": "z", "z": "sub/../real.txt"}, "x.yaml"),
        ({"up": "..", "x.yaml": "sub/loop/real.txt", "sub/loop": ".."}, "x.yaml"),
        ({"x.yaml": "ABSOLUTE/real.txt"}, "x.yaml"),
        ({"x.yaml": "ABSOLUTE/sub/../real.txt"}, "x.yaml"),
    ],
)
def test_symlink_within_the_directory_is_followed(mesh: Path, links: dict[str, str], name: str) -> None:
    """Its target may contain folders, other symlinks and the directory's absolute path."""
    for link, target in links.items():
        (mesh / link).symlink_to(target.replace("ABSOLUTE", str(mesh)))
    assert read_content(mesh, name) == "inside"


def test_mounted_config_map_is_read_before_and_after_its_update(mesh: Path) -> None:
    """The kubelet links `x.yaml` to `..data/x.yaml`, and replaces `..data` as a whole."""
    for version in ("..1", "..2"):
        (mesh / version).mkdir()
        (mesh / version / "x.yaml").write_text(version)
    (mesh / "..data").symlink_to("..1")
    (mesh / "x.yaml").symlink_to("..data/x.yaml")
    assert read_content(mesh, "x.yaml") == "..1"
    (mesh / "..data_tmp").symlink_to("..2")
    (mesh / "..data_tmp").rename(mesh / "..data")
    assert read_content(mesh, "x.yaml") == "..2"


def test_directory_itself_may_be_a_symlink(mesh: Path, tmp_path: Path) -> None:
    """Absolute symlinks inside may use the symlink's path or the real path."""
    (tmp_path / "current").symlink_to("mesh")
    (mesh / "x.yaml").symlink_to(tmp_path / "current" / "real.txt")
    (mesh / "y.yaml").symlink_to(mesh / "real.txt")
    assert [read_content(tmp_path / "current", name) for name in ("x.yaml", "y.yaml")] == ["inside"] * 2


@pytest.mark.parametrize(
    "links",
    [
        {"x.yaml": "../secret"},
        {"x.yaml": "ABSOLUTE/../secret"},
        {"x.yaml": "ROOT/secret"},
        {"x.yaml": "sub/../../secret"},
        {"x.yaml": "y", "y": "../secret"},
        {"x.yaml": "out/secret", "out": ".."},
        {"x.yaml": "sub/out/secret", "sub/out": "ROOT"},
        {"x.yaml": "../mesh/real.txt"},
        {"x.yaml": "/dev/zero"},
        {"x.yaml": "/proc/self/environ"},
        {"x.yaml": "/proc/self/root/etc/hostname"},
    ],
    ids=str,
)
def test_symlink_out_of_the_directory_is_refused(mesh: Path, tmp_path: Path, links: dict[str, str]) -> None:
    """It is refused even if a later part of the path leads back, because files outside must not be opened."""
    for link, target in links.items():
        (mesh / link).symlink_to(target.replace("ABSOLUTE", str(mesh)).replace("ROOT", str(tmp_path)))
    assert read_content(mesh, "x.yaml") == LEADS_OUT


def test_symlink_that_replaces_a_listed_folder_is_refused(mesh: Path, tmp_path: Path) -> None:
    """An attacker may replace a folder with a symlink after the folder was listed."""
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "x.yaml").write_text(SECRET)
    (mesh / "sub").rmdir()
    (mesh / "sub").symlink_to(tmp_path / "away")
    assert read_content(mesh, "sub/x.yaml") == LEADS_OUT


def test_symlink_loop_is_an_error(mesh: Path) -> None:
    """The error is that of Linux for too many levels of symbolic links."""
    (mesh / "x.yaml").symlink_to("y.yaml")
    (mesh / "y.yaml").symlink_to("x.yaml")
    unreadable_file = UnreadableFile(
        Code.UNREADABLE, "must be a readable file: too many levels of symbolic links"
    )
    assert read_content(mesh, "x.yaml") == unreadable_file


@pytest.mark.parametrize(
    "read", [lambda mesh: read_content(mesh, "x.yaml"), lambda mesh: read_named(mesh / "x.yaml")]
)
def test_reading_a_file_leaves_no_descriptor_open(mesh: Path, read: Callable[[Path], object]) -> None:
    """This holds for files that are read, refused or missing."""
    before = len([*Path("/proc/self/fd").iterdir()])
    for target in ("sub/../real.txt", "../secret", "sub/../sub/../../secret", "none", "sub", "x.yaml"):
        (mesh / "x.yaml").symlink_to(target)
        read(mesh)
        (mesh / "x.yaml").unlink()
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_secret_behind_a_symlink_appears_in_no_problem_or_log(mesh: Path) -> None:
    """The other file of the directory is read, and the symlink is a problem."""
    (mesh / "x.yaml").write_text(account("a"))
    (mesh / "y.yaml").symlink_to("../secret")
    source = DirectorySource(mesh, lambda: datetime.now(UTC), settle=timedelta(0))
    with capture_logs() as logs:
        source.load()
    assert [(problem.code, problem.origin, problem.expected) for problem in source.problems()] == [
        ("MW1104", InFile("y.yaml"), LEADS_OUT.expected)
    ]
    assert list(source.objects()) == [account_key("a")]
    assert SECRET not in f"{source.problems()} {logs}"


def test_file_named_by_the_user_may_be_a_symlink_out_of_its_directory(mesh: Path) -> None:
    """A user who types a path means its target; a FIFO or folder is refused, and a missing file is None."""
    (mesh / "x.yaml").symlink_to("../secret")
    assert read_named(mesh / "x.yaml") == SECRET
    os.mkfifo(mesh / "pipe.yaml")
    assert read_named(mesh / "pipe.yaml") == NOT_REGULAR
    assert read_named(mesh / "sub") == NOT_REGULAR
    assert read_named(mesh / "none.yaml") is None


def test_fifo_that_replaces_a_file_during_opening_does_not_block(mesh: Path) -> None:
    """Files are opened without waiting for a writer, and their type is checked after opening."""
    os.mkfifo(mesh / "pipe")
    (mesh / "x.yaml").write_text("inside")
    with _as_it_is_opened("x.yaml", lambda: (mesh / "pipe").replace(mesh / "x.yaml")):
        result = list[object]()
        reading = threading.Thread(target=lambda: result.append(read_content(mesh, "x.yaml")), daemon=True)
        reading.start()
        reading.join(30)
    assert result == [NOT_REGULAR]


_waiting = dict[str, Callable[[], object]]()


def _audited(event: str, arguments: tuple[object, ...]) -> None:
    """Run the change that waits for a file; the interpreter raises the audit event just before opening."""
    if event == "open" and _waiting:
        name = str(arguments[0]).rpartition("/")[2]
        if name in _waiting:
            _waiting.pop(name)()


@contextmanager
def _as_it_is_opened(name: str, change: Callable[[], object]) -> Iterator[None]:
    """Run a change once, at the moment at which a file is opened."""
    _waiting[name] = change
    sys.addaudithook(_audited)  # the hook cannot be removed, and does nothing outside this block
    try:
        yield
        assert name not in _waiting
    finally:
        _waiting.clear()
