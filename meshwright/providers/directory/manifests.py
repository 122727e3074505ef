"""Manifests of a directory as one immutable state, in which each file is a holder of objects."""

from collections.abc import Iterable, Mapping
from typing import Self

from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.providers.directory.file_form import Content, read_file
from meshwright.providers.objects import Objects


class Manifests(Objects[str]):
    """All manifest files of a directory, by relative name."""

    __slots__ = ()

    def apply(self, file: str, content: Content) -> Self:
        """Return the state with one file's new content, or without the file if the content is None."""
        return self.apply_all({file: content})

    def apply_all(self, contents: Mapping[str, Content]) -> Self:
        """Return the state with the new contents of several files; `self` without a change."""
        return self.apply_stream(contents.items())

    def apply_stream(self, contents: Iterable[tuple[str, Content]]) -> Self:
        """Do the same as `apply_all` for contents from an iterator, with only one of them in memory."""
        return self.holding(
            {
                file: None if content is None else read_file(file, content, self.holders.get(file))
                for file, content in contents
            }
        )

    @staticmethod
    def holder_of(sourced: SourcedObject) -> str:
        """Return the name of the file that contains an object."""
        match sourced.origin:
            case InFile(path):
                return path
            case other:
                raise TypeError(f"{sourced.key} is from {other}, which is not a file")
