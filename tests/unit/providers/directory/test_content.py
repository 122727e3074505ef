"""Tests of reading a file's content, whatever size the system reports."""

from pathlib import Path

import pytest

from meshwright.providers.directory.file_form import UnreadableFile
from meshwright.providers.directory.files import read_content, read_named
from meshwright.providers.text.documents import MAX_BYTES
from meshwright.specs.codes import Code


def test_file_longer_than_its_reported_size_is_read_to_the_end() -> None:
    """Files of /proc report size 0, as does a file that is just being written; all their content is read."""
    there = Path("/proc/filesystems")
    assert there.stat().st_size == 0
    assert read_named(there) == there.read_text()


@pytest.mark.parametrize("over", [0, 1])
def test_file_is_refused_from_one_byte_above_the_size_limit(tmp_path: Path, over: int) -> None:
    """A file of exactly MAX_BYTES is read, and one more byte makes it too large."""
    (tmp_path / "large.yaml").write_text("#" * (MAX_BYTES + over))
    content = read_content(tmp_path, "large.yaml")
    if over:
        assert isinstance(content, UnreadableFile)
        assert content.code is Code.TOO_LARGE
    else:
        assert content == "#" * MAX_BYTES
