"""Tests of imports into a state directory, which may be interrupted at each change of the file system."""

import itertools
from pathlib import Path

import pytest

from certs.errors import StateError
from certs.roots.rotation import Rotation
from meshwright.transfer.directory_state import require_empty
from tests.tools.hypothesis_profiles import examples
from tests.unit.certs.authority_files.steps import Died, dies_at
from tests.unit.transfer.meshes import read, rotating_mesh, small_mesh, started, write


@pytest.mark.fuzzed
def test_interrupted_import_is_refused_and_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server does not take the half of a mesh for a mesh, and the next import ends with the whole.

    Every run dies at every third write, `make fuzz` at each of them.
    """
    value = rotating_mesh()
    assert isinstance(value.authority.rotation, Rotation)
    for number in itertools.count(0, examples(3, fresh=1)):
        state = tmp_path / str(number)
        with monkeypatch.context() as patch:
            dies_at(number, patch)
            try:
                write(state, value)
            except Died:
                is_done = False
            else:
                is_done = True
        if is_done:
            assert number > 20
            break
        if (state / "importing.json").exists():
            files = sorted(state.iterdir())
            with (
                pytest.raises(StateError, match=r"the import into .* has not ended \(file importing.json\)"),
                started(state),
            ):
                pass
            assert sorted(state.iterdir()) == files
            require_empty(state, value.root)
            write(state, value)
        assert not list(state.glob("*importing.json*")) or not (state / "ca").exists()
        if (state / "ca").exists():
            assert read(state) == value
        else:
            require_empty(state, value.root)


def test_directory_of_a_mesh_is_refused(tmp_path: Path) -> None:
    """The sentence has both fingerprints."""
    write(tmp_path / "state", small_mesh())
    with pytest.raises(StateError) as refused:
        require_empty(tmp_path / "state", "ab12")
    assert str(refused.value) == (
        f"the state directory {tmp_path / 'state'} has the CA {small_mesh().root}, and the file has the CA "
        "ab12: import into an empty directory"
    )


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("lost+found", False), ("server.lock", False), (".ca.lock", False), ("tokens.sqlite", True)],
)
def test_files_without_a_state_do_not_matter(tmp_path: Path, name: str, *, is_refused: bool) -> None:
    """Of a file system, and of a command that was refused; other files may be needed."""
    (tmp_path / name).touch()
    if is_refused:
        with pytest.raises(StateError, match=r"has other files \(tokens.sqlite\), and .* the CA ab"):
            require_empty(tmp_path, "ab")
    else:
        require_empty(tmp_path, "ab")
    require_empty(tmp_path / "missing", "ab")
