"""Tests that images depend only on the files of this machine, and not on time, place or user."""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools.real_parts.building import PartError
from tools.real_parts.images.archives import Image, find_program, libraries, tree
from tools.real_parts.images.bytecode import compiled
from tools.real_parts.images.layers import Folder, Layers, Link, Text


def _parts(archive: Path) -> tuple[dict[str, bytes], dict[str, Any], list[str]]:
    """Return an archive's blobs by digest, the image's config, and the digests of its layers."""
    with tarfile.open(archive) as tar_file:
        parts = {
            tar_info.name: file.read() for tar_info in tar_file if (file := tar_file.extractfile(tar_info))
        }
    blobs = {name.rpartition("/")[2]: part for name, part in parts.items() if name.startswith("blobs/")}
    assert all(hashlib.sha256(blob).hexdigest() == digest for digest, blob in blobs.items())
    (named,) = json.loads(parts["index.json"])["manifests"]
    assert named["annotations"] == {"io.containerd.image.name": "some:1"}
    manifest = json.loads(blobs[named["digest"].removeprefix("sha256:")])
    config = json.loads(blobs[manifest["config"]["digest"].removeprefix("sha256:")])
    digests = [layer["digest"].removeprefix("sha256:") for layer in manifest["layers"]]
    return blobs, config, digests


def _layer(archive: Path) -> dict[str, tarfile.TarInfo]:
    blobs, _, (digest,) = _parts(archive)
    with tarfile.open(fileobj=io.BytesIO(blobs[digest])) as inner:
        return {tar_info.name: tar_info for tar_info in inner}


def test_equal_files_give_a_byte_identical_image(tmp_path: Path) -> None:
    """The files' times, umask and order do not matter."""
    made = []
    for number, (mode, names) in enumerate(((0o600, "abc"), (0o644, "cba"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
            (folder / name).chmod(mode)
            os.utime(folder / name, (number, number))
        files = {f"/opt/{name}": folder / name for name in names} | {"/bin/sh": Link("busybox")}
        Image("some:1", files, environment={"B": "2", "A": "1"}).write(folder / "image.tar")
        made.append((folder / "image.tar").read_bytes())
    assert made[0] == made[1]


def test_image_config_has_the_digests_of_its_layers(tmp_path: Path) -> None:
    """An importer checks the digests of the unpacked layers."""
    image = Image("some:1", {"/opt/hello": Text("hello", executable=True)}, ("/opt/hello",), {"A": "1"})
    image.write(tmp_path / "image.tar")
    _, config, layers = _parts(tmp_path / "image.tar")
    assert config["rootfs"]["diff_ids"] == [f"sha256:{layer}" for layer in layers]
    assert config["config"]["Entrypoint"] == ["/opt/hello"]
    assert "A=1" in config["config"]["Env"]


def test_shared_layer_is_written_only_until_it_was_imported(tmp_path: Path) -> None:
    """In each image it is below the image's own layer, with the same digest.

    Without a folder for shared layers it is always written.
    """
    shared = {"/opt/shared": Text("shared")}
    layers = Layers(tmp_path / "layers")
    layers.folder.mkdir()
    result = []
    for name, kept in (("one", layers), ("two", layers), ("three", None)):
        image = Image("some:1", {f"/opt/{name}": Text(name)}, below=(shared,))
        assert set(image.everything) == {"/opt/shared", f"/opt/{name}"}
        image.write(tmp_path / name, kept)
        blobs, _, (below, top) = _parts(tmp_path / name)
        with tarfile.open(fileobj=io.BytesIO(blobs[top])) as inner:
            assert f"opt/{name}" in inner.getnames()
            assert "opt/shared" not in inner.getnames()
        result.append((below, below in blobs))
        layers.imported()
    ((digest, _), *_) = result
    assert result == [(digest, True), (digest, False), (digest, True)]
    assert [*layers.folder.iterdir()] == []


def test_parent_folders_of_files_are_accessible_to_all(tmp_path: Path) -> None:
    """A folder precedes its files, executables stay executable, and root owns everything."""
    (tmp_path / "run").write_text("")
    (tmp_path / "run").chmod(0o700)
    Image("some:1", {"/a/b/run": tmp_path / "run", "/c": Folder(0o700)}).write(tmp_path / "image.tar")
    tar_infos = _layer(tmp_path / "image.tar")
    assert [name for name in tar_infos if name.startswith("a")] == ["a", "a/b", "a/b/run"]
    modes = {name: tar_infos[name].mode for name in ("a", "a/b", "a/b/run", "c", "tmp")}
    assert modes == {"a": 0o755, "a/b": 0o755, "a/b/run": 0o755, "c": 0o700, "tmp": 0o1777}
    assert {(tar_info.uid, tar_info.gid, tar_info.mtime) for tar_info in tar_infos.values()} == {(0, 0, 0)}


def test_tree_has_links_and_no_excluded_or_compiled_files(tmp_path: Path) -> None:
    """Compiled Python is left out, because it contains the time of its compilation."""
    for name in ("kept", "__pycache__/kept.pyc", "test/one"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to("kept")
    assert dict(tree(tmp_path, "/at", ["test"])) == {"/at/kept": tmp_path / "kept", "/at/link": Link("kept")}


def test_bytecode_of_modules_is_used_without_a_check_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files of an image have the same time, and a container starts faster with bytecode."""
    monkeypatch.setenv("REAL_PARTS", str(tmp_path / "parts"))
    for name, text in (("module.py", "VALUE = 1"), ("template.py", "{{ no Python }}")):
        (tmp_path / name).write_text(text)
    files = {f"{tmp_path}/{item}": tmp_path / item for item in ("module.py", "template.py")}
    ((at, made),) = compiled(files).items()
    assert compiled(files) == {at: made}
    assert isinstance(made, Path)
    Path(at).parent.mkdir()
    Path(at).write_bytes(made.read_bytes())
    (tmp_path / "module.py").write_text("VALUE = 2")
    words = [sys.executable, "-c", "import module; print(module.VALUE)"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "1\n"


def test_program_is_copied_with_its_shared_libraries() -> None:
    """They are at the loader's paths; a missing program is an error with its name."""
    result = libraries([Path("/bin/sh").resolve()])
    assert any("libc.so" in name for name in result)
    assert all(isinstance(path, Path) and path.is_file() for path in result.values())
    with pytest.raises(PartError, match="the program nonesuch is missing on this machine"):
        find_program("nonesuch")
