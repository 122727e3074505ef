"""Tests of archives: only files and time decide their bytes, and other programs read them."""

import gzip
import io
import os
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools.release.archives import File, below, pack, unpack

FILES = {"b.txt": File(b"second\n"), "a/run": File(b"#!/bin/sh\n", executable=True)}
TIME = 1_700_000_000


def test_archive_has_files_in_their_order_with_fixed_owner_mode_and_time() -> None:
    """Nothing of the machine or the user is in the archive, and gzip's header has the same time."""
    archive = pack(FILES, "top", TIME)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        found = [
            (each.name, each.mode, each.mtime, each.uid, each.gid, each.uname, each.gname) for each in opened
        ]
    assert found == [
        ("top/b.txt", 0o644, TIME, 0, 0, "", ""),
        ("top/a/run", 0o755, TIME, 0, 0, "", ""),
    ]
    assert (int.from_bytes(archive[4:8], "little"), archive[3]) == (TIME, 0)


def test_archive_is_unpacked_by_tar(tmp_path: Path) -> None:
    """Debian's tar reads a path of more than 100 bytes, and the executable file can be executed."""
    long = "/".join(["folder-with-a-name"] * 12) + "/file"
    done = subprocess.run(
        ["tar", "-xz", "-C", str(tmp_path)], input=pack({**FILES, long: File(b"x")}, "", TIME), check=False
    )
    assert done.returncode == 0
    assert (tmp_path / long).read_bytes() == b"x"
    assert (tmp_path / "a/run").stat().st_mode & stat.S_IXUSR


def test_unpacked_files_equal_the_packed_ones() -> None:
    """Content and permission to execute survive; the order is the archive's."""
    assert list(unpack(pack(FILES, "", TIME)).items()) == list(FILES.items())


def test_links_are_refused_by_name(tmp_path: Path) -> None:
    """A link could lead out of the tree, and its target depends on the machine."""
    (tmp_path / "link").symlink_to("/etc/hostname")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(tmp_path / "link", "link")
    with pytest.raises(ValueError, match="link: must be a file; a release has no links and no devices"):
        unpack(out.getvalue())


def test_archive_does_not_depend_on_umask_and_clock() -> None:
    """The same files give the same bytes under another umask and at another moment."""
    first = pack(FILES, "", TIME)
    before = os.umask(0o077)
    try:
        assert pack(FILES, "", TIME) == first
    finally:
        os.umask(before)
    assert gzip.decompress(pack(FILES, "", TIME + 1)) != gzip.decompress(first)


def test_files_below_a_folder_are_named_from_it() -> None:
    """A folder with a longer name is another folder."""
    files = {"xds/b": File(b"1"), "xds/a": File(b"2"), "xds-more/c": File(b"3"), "xds": File(b"4")}
    assert list(below(files, "xds").items()) == [("a", File(b"2")), ("b", File(b"1"))]
