"""Tests of the file with the objects in etcd that survive a restart."""

import pytest

from meshwright.etcd.values import KeyValue
from meshwright.providers.etcd.last_objects import SavedObjectsError, read, written

ITEMS = (KeyValue(b"/a", b"one\xff", 2, 3), KeyValue(b"/b", b"", 4, 4))
CONTENT = written(ITEMS)


def test_saved_objects_are_read_as_they_were_written() -> None:
    """The order of the keys does not matter."""
    assert read(CONTENT) == ITEMS
    assert written(reversed(ITEMS)) == CONTENT
    assert read(written(())) == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        CONTENT[:-3],
        CONTENT.replace(b'"version": 1', b'"version": 2'),
        CONTENT.replace(b",2,3]", b",2,4]"),
    ],
)
def test_damaged_file_is_refused(content: bytes) -> None:
    """So is one of another version, and an edited one."""
    assert content != CONTENT
    with pytest.raises(SavedObjectsError):
        read(content)
