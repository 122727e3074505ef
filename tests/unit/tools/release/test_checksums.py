"""Tests of SHA256SUMS with the program of users, `sha256sum -c`."""

import subprocess
from pathlib import Path

from tools.release.artifacts import SUMS, Names, is_of_a_release
from tools.release.checksums import sums

FILES = {"meshwright-0.2.0.tgz": b"chart", "meshwright-0.2.0.tar.gz": b""}


def _checked(folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", SUMS],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_sums_are_read_by_sha256sum(tmp_path: Path) -> None:
    """Every file is found and equal; after a change of one byte exactly this file fails."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / SUMS).write_text(sums(FILES), "utf-8")
    assert _checked(tmp_path) == (0, "meshwright-0.2.0.tgz: OK\nmeshwright-0.2.0.tar.gz: OK\n")
    (tmp_path / "meshwright-0.2.0.tar.gz").write_bytes(b"x")
    assert _checked(tmp_path) == (1, "meshwright-0.2.0.tgz: OK\nmeshwright-0.2.0.tar.gz: FAILED\n")


def test_every_file_of_a_release_has_its_name_and_place() -> None:
    """Users, scripts and docs/extend/releasing.md depend on these names."""
    names = Names("1.2.3")
    assert names.summed == (
        "meshwright-1.2.3.tar.gz",
        "meshwright-1.2.3-py3-none-any.whl",
        "meshwright-1.2.3-requirements.txt",
        "meshwright-1.2.3.tgz",
        "meshwright-control-plane-1.2.3-context.tar.gz",
        "meshwright-proxy-1.2.3-context.tar.gz",
        "meshwright-1.2.3.cdx.json",
        "meshwright-1.2.3.intoto.json",
    )
    assert names.signed == ("SHA256SUMS", "meshwright-1.2.3.cdx.json", "meshwright-1.2.3.intoto.json")
    assert all(is_of_a_release(name) for name in (*names.summed, SUMS, f"{SUMS}.sig"))
    assert not is_of_a_release("notes.txt")
