"""The manifests of a directory as one immutable state: its files are what holds objects."""

from collections.abc import Iterable, Mapping
from typing import Self

from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.providers.directory.file_form import Content, read_file
from meshwright.providers.objects import Objects


class Manifests(Objects[str]):
    """All files of a directory, by their names relative to it."""

    __slots__ = ()

    def apply(self, file: str, content: Content) -> Self:
        """Return the state with one file's new content, or without the file if that is None."""
        return self.apply_all({file: content})

    def apply_all(self, contents: Mapping[str, Content]) -> Self:
        """Return the state with the new contents of several files at once; itself if that changes nothing."""
        return self.apply_each(contents.items())

    def apply_each(self, contents: Iterable[tuple[str, Content]]) -> Self:
        """Do as `apply_all` with contents that come one by one: no two of them are held at a time."""
        return self.holding(
            {
                file: None if content is None else read_file(file, content, self.holders.get(file))
                for file, content in contents
            }
        )

    @staticmethod
    def holder_of(sourced: SourcedObject) -> str:
        """Return the file that an object stands in."""
        match sourced.origin:
            case InFile(path):
                return path
            case other:
                raise TypeError(f"{sourced.key} is from {other}, which is no file")
