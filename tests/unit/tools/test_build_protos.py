"""Tests of installing generated modules into a folder that running programs import from."""

import sys
from pathlib import Path

import pytest

from tools.build_protos import install, run_python


def _tree(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / "envoy" / "v3" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_unchanged_module_is_not_replaced(tmp_path: Path) -> None:
    """A changed module is a new file, so that a reader of the old one can continue."""
    protos = tmp_path / "protos"
    install(_tree(tmp_path / "first", same="a", other="b"), protos)
    before = {path: path.stat().st_ino for path in protos.rglob("*.py")}
    assert len(before) == 4
    with (protos / "envoy/v3/other.py").open() as reading:
        install(_tree(tmp_path / "second", same="a", other="c"), protos)
        assert reading.read() == "b"
    after = {path: path.stat().st_ino for path in protos.rglob("*.py")}
    assert {path.name for path in before if before[path] != after[path]} == {"other.py"}
    assert (protos / "envoy/v3/other.py").read_text() == "c"


def test_module_no_longer_generated_is_removed(tmp_path: Path) -> None:
    """Files of other origin stay, such as the stamp of the last build."""
    protos = tmp_path / "protos"
    install(_tree(tmp_path / "first", kept="a", gone="b"), protos)
    (protos / "envoy" / ".built").touch()
    (protos / "meshwright.proto").touch()
    install(_tree(tmp_path / "second", kept="a"), protos)
    names = sorted(path.name for path in protos.rglob("*") if path.is_file())
    assert names == [".built", "__init__.py", "__init__.py", "kept.py", "meshwright.proto"]


def test_generators_import_the_modules_of_the_build_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build requirements of pip are only in sys.path; the checkout's own modules must not be imported."""
    checkout, overlay = tmp_path / "checkout", tmp_path / "overlay"
    for folder, name in ((checkout, "xds"), (overlay, "xds"), (overlay, "required")):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(f"NAME = {f'{name} of {folder.name}'!r}")
    monkeypatch.setattr(sys, "path", [str(checkout), str(overlay), *sys.path])
    code = "import xds, required; print(xds.NAME, required.NAME, sep=', ')"
    assert run_python(checkout / "protos", "-c", code) == "xds of overlay, required of overlay\n"
