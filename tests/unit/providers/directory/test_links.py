"""Symlinks and FIFOs in a directory of manifests, as a repository can carry them."""

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
    """Return a directory of manifests beside a file with a secret."""
    (tmp_path / "secret").write_text(SECRET)
    found = tmp_path / "mesh"
    (found / "sub").mkdir(parents=True)
    (found / "real.txt").write_text("inside")
    return found


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
def test_a_symlink_within_the_directory_is_followed(mesh: Path, links: dict[str, str], name: str) -> None:
    """It may go by folders, by other symlinks, and by the absolute path of the directory."""
    for link, target in links.items():
        (mesh / link).symlink_to(target.replace("ABSOLUTE", str(mesh)))
    assert read_content(mesh, name) == "inside"


def test_a_mounted_config_map_is_read_and_exchanged(mesh: Path) -> None:
    """The kubelet links `x.yaml` to `..data/x.yaml`, and `..data` to a folder that it exchanges whole."""
    for version in ("..1", "..2"):
        (mesh / version).mkdir()
        (mesh / version / "x.yaml").write_text(version)
    (mesh / "..data").symlink_to("..1")
    (mesh / "x.yaml").symlink_to("..data/x.yaml")
    assert read_content(mesh, "x.yaml") == "..1"
    (mesh / "..data_tmp").symlink_to("..2")
    (mesh / "..data_tmp").rename(mesh / "..data")
    assert read_content(mesh, "x.yaml") == "..2"


def test_the_directory_itself_may_be_a_symlink(mesh: Path, tmp_path: Path) -> None:
    """Absolute symlinks in it may name it either way."""
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
def test_a_symlink_out_of_the_directory_is_refused(mesh: Path, tmp_path: Path, links: dict[str, str]) -> None:
    """Whichever way it leaves, even if it comes back: nothing outside is opened."""
    for link, target in links.items():
        (mesh / link).symlink_to(target.replace("ABSOLUTE", str(mesh)).replace("ROOT", str(tmp_path)))
    assert read_content(mesh, "x.yaml") == LEADS_OUT


def test_a_symlink_in_the_place_of_a_folder_is_refused(mesh: Path, tmp_path: Path) -> None:
    """Somebody may exchange a folder after it was listed."""
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "x.yaml").write_text(SECRET)
    (mesh / "sub").rmdir()
    (mesh / "sub").symlink_to(tmp_path / "away")
    assert read_content(mesh, "sub/x.yaml") == LEADS_OUT


def test_symlinks_that_lead_to_each_other_end(mesh: Path) -> None:
    """After as many as Linux follows."""
    (mesh / "x.yaml").symlink_to("y.yaml")
    (mesh / "y.yaml").symlink_to("x.yaml")
    found = UnreadableFile(Code.UNREADABLE, "must be a readable file: too many levels of symbolic links")
    assert read_content(mesh, "x.yaml") == found


@pytest.mark.parametrize(
    "read", [lambda mesh: read_content(mesh, "x.yaml"), lambda mesh: read_named(mesh / "x.yaml")]
)
def test_no_descriptor_stays_open(mesh: Path, read: Callable[[Path], object]) -> None:
    """Of whatever comes of it: read, refused, and not there."""
    before = len([*Path("/proc/self/fd").iterdir()])
    for target in ("sub/../real.txt", "../secret", "sub/../sub/../../secret", "none", "sub", "x.yaml"):
        (mesh / "x.yaml").symlink_to(target)
        read(mesh)
        (mesh / "x.yaml").unlink()
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_secret_behind_a_symlink_reaches_nobody(mesh: Path) -> None:
    """Neither problems nor the log have it, and what the file held stays in force."""
    (mesh / "x.yaml").write_text(account("a"))
    (mesh / "y.yaml").symlink_to("../secret")
    source = DirectorySource(mesh, lambda: datetime.now(UTC), settle=timedelta(0))
    with capture_logs() as logs:
        source.load()
    assert [(each.code, each.origin, each.expected) for each in source.problems()] == [
        ("MW1104", InFile("y.yaml"), LEADS_OUT.expected)
    ]
    assert list(source.objects()) == [account_key("a")]
    assert SECRET not in f"{source.problems()} {logs}"


def test_a_file_that_somebody_names_may_lead_anywhere(mesh: Path) -> None:
    """Whoever types a file's name means what it leads to; a pipe is refused at once."""
    (mesh / "x.yaml").symlink_to("../secret")
    assert read_named(mesh / "x.yaml") == SECRET
    os.mkfifo(mesh / "pipe.yaml")
    assert read_named(mesh / "pipe.yaml") == NOT_REGULAR
    assert read_named(mesh / "sub") == NOT_REGULAR
    assert read_named(mesh / "none.yaml") is None


def test_a_fifo_that_takes_a_files_place_as_it_is_opened_holds_nobody_up(mesh: Path) -> None:
    """It is opened without waiting for a writer, and what it is is looked at only once it is open."""
    os.mkfifo(mesh / "pipe")
    (mesh / "x.yaml").write_text("inside")
    with _as_it_is_opened("x.yaml", lambda: (mesh / "pipe").replace(mesh / "x.yaml")):
        found = list[object]()
        reading = threading.Thread(target=lambda: found.append(read_content(mesh, "x.yaml")), daemon=True)
        reading.start()
        reading.join(30)
    assert found == [NOT_REGULAR]


_waiting = dict[str, Callable[[], object]]()


def _audited(event: str, arguments: tuple[object, ...]) -> None:
    """Do what waits for a file to be opened: the interpreter says so just before it asks the system."""
    if event == "open" and _waiting:
        name = str(arguments[0]).rpartition("/")[2]
        if name in _waiting:
            _waiting.pop(name)()


@contextmanager
def _as_it_is_opened(name: str, change: Callable[[], object]) -> Iterator[None]:
    """Change something at the moment at which a file is opened, once."""
    _waiting[name] = change
    sys.addaudithook(_audited)  # it stays as long as the process lives, and does nothing outside this block
    try:
        yield
        assert name not in _waiting
    finally:
        _waiting.clear()
