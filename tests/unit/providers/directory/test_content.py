"""What a file holds, whatever its size was said to be."""

from pathlib import Path

import pytest

from meshwright.providers.directory.file_form import UnreadableFile
from meshwright.providers.directory.files import read_content, read_named
from meshwright.providers.text.documents import MAX_BYTES
from meshwright.specs.codes import Code


def test_a_file_that_is_longer_than_was_said_is_read_to_its_end() -> None:
    """The kernel's own files say a size of nothing, as one does that is written just now."""
    there = Path("/proc/filesystems")
    assert there.stat().st_size == 0
    assert read_named(there) == there.read_text()


@pytest.mark.parametrize("over", [0, 1])
def test_a_file_is_read_up_to_the_bound(tmp_path: Path, over: int) -> None:
    """One more byte is too many."""
    (tmp_path / "large.yaml").write_text("#" * (MAX_BYTES + over))
    found = read_content(tmp_path, "large.yaml")
    if over:
        assert isinstance(found, UnreadableFile)
        assert found.code is Code.TOO_LARGE
    else:
        assert found == "#" * MAX_BYTES
