"""Manifests as the server would read them, without a server: a directory, a file, or standard input."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from catalog.lint.problems import problems
from catalog.store.view import MeshSettings, View
from meshwright.cli.errors import OfflineError
from meshwright.cli.process.standard_streams import read_bytes
from meshwright.mesh.objects import ObjectKey, SourcedObject, created_at, created_of
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Problems, ordered
from meshwright.mesh.values.picture import Picture
from meshwright.providers.directory.file_form import Content
from meshwright.providers.directory.files import (
    EXTENSIONS,
    DirectoryError,
    UnlistedFolder,
    content_of,
    list_directory,
    read_content,
    read_named,
)
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.merge import merge
from meshwright.providers.text.documents import MAX_BYTES, documents
from meshwright.sidecars import lint
from meshwright.sidecars.contract.errors import DriverError
from meshwright.sidecars.registry import DriverRegistry
from meshwright.specs.codes import Code

STANDARD_INPUT: Final = Path("-")


@dataclass(frozen=True, slots=True)
class LoadedManifests:
    """Objects that were read, and what is wrong with them one by one."""

    objects: Picture[ObjectKey, SourcedObject] = field(default_factory=Picture)
    problems: Problems = ()
    nothing: str = ""
    """Why there is not one document in what was read, as a sentence; empty where there is one."""

    def below(self, other: "LoadedManifests") -> "LoadedManifests":
        """Return both, the other's objects in the place of ours of the same names."""
        above = {key: self._aged(key, each) for key, each in other.objects.items()}
        merged = merge([("above", Picture(above)), ("below", self.objects)])
        claims = {key.claim for key in other.objects}
        kept = (each for each in self.problems if each.key is None or each.key.claim not in claims)
        return LoadedManifests(Picture(merged.objects()), ordered((*kept, *other.problems)))

    def _aged(self, key: ObjectKey, applied: SourcedObject) -> SourcedObject:
        """Return an object with the age of the one in whose place it is applied: that does not change it."""
        before = self.objects.get(key)
        if before is None or created_of(applied.value):
            return applied
        return replace(applied, value=created_at(applied.value, created_of(before.value)))


@dataclass(frozen=True, slots=True)
class OfflineMesh:
    """What manifests come to: the view, what the server would say of them, and how many objects there are."""

    view: View
    problems: Problems
    objects: int


def read(where: Path, settings: MeshSettings | None = None) -> OfflineMesh:
    """Read a directory, a single file whatever its name ends in, or `-`; raise OfflineError."""
    return seen(held(where), settings)


def held(where: Path) -> LoadedManifests:
    """Return the objects of a directory, a file, or standard input; raise OfflineError."""
    unlisted: list[UnlistedFolder] = []
    alone = _alone(where)
    try:
        manifests = Manifests().apply_each(_contents(where, alone, unlisted))
        objects, problems = manifests.objects(), (*map(_unlisted, unlisted), *manifests.problems())
        if objects or problems:
            return LoadedManifests(objects, ordered(problems))
        return LoadedManifests(nothing=_nothing(where, _contents(where, alone, unlisted)))
    except DirectoryError as error:
        raise OfflineError(str(error)) from error


def held_some(where: Path) -> LoadedManifests:
    """Do as `held`; raise OfflineError, too, where there is not one document: nothing could be said of it."""
    found = held(where)
    if found.nothing:
        raise OfflineError(found.nothing)
    return found


def seen(found: LoadedManifests, settings: MeshSettings | None = None) -> OfflineMesh:
    """Return what objects come to together; raise OfflineError."""
    try:
        view = View.build(found.objects, settings or MeshSettings())
    except ValueError as error:
        raise OfflineError(str(error)) from error
    said = {*found.problems, *problems(view), *_of_drivers(view)}
    return OfflineMesh(view, ordered(said), len(found.objects))


def _alone(where: Path) -> tuple[str, str] | None:
    """Return the name and the text of one file, None for a directory; raise OfflineError.

    Of several files, one that cannot be read is a problem among others; here it is all there is.
    """
    content: Content
    if where == STANDARD_INPUT:
        name, content = "standard input", content_of(read_bytes(MAX_BYTES + 1))
    elif where.exists() and not where.is_dir():
        name, content = where.name, read_named(where)
    else:
        return None
    if not isinstance(content, str):
        why = "it has gone" if content is None else content.expected
        raise OfflineError(f"{name if where == STANDARD_INPUT else where} cannot be read: {why}")
    return name, content


def _contents(
    where: Path, alone: tuple[str, str] | None, unlisted: list[UnlistedFolder]
) -> Iterator[tuple[str, Content]]:
    """Yield files by name; folders that are not listed go into `unlisted`. Raises DirectoryError."""
    if alone is not None:
        yield alone
    else:
        listing = list_directory(where)
        unlisted.extend(listing.unlisted)
        yield from ((name, read_content(where, name)) for name in listing.files)


def _nothing(where: Path, contents: Iterator[tuple[str, Content]]) -> str:
    """Say why there is no document in files, which hold no object; nothing if there is one."""
    files = 0
    for name, content in contents:
        if isinstance(content, str) and documents(content, as_json=name.endswith(".json")):
            return ""
        files += 1
    if not files:
        return f"directory {where} has no manifests: they are files that end in {', '.join(EXTENSIONS)}"
    what = "standard input" if where == STANDARD_INPUT else str(where)
    return f"{what} has no manifest: there is nothing, or comments alone"


def _of_drivers(view: View) -> Problems:
    """Return what is wrong between the objects and the drivers installed here, as this environment has it."""
    try:
        drivers = DriverRegistry.discover().drivers
    except DriverError as error:
        raise OfflineError(str(error)) from error
    return lint.problems(view, lint.InstalledDrivers(drivers, os.environ))


def _unlisted(found: UnlistedFolder) -> Problem:
    return Problem(
        code=str(Code.DIRECTORY_UNREADABLE),
        severity=found.severity,
        origin=InFile(found.folder),
        expected=found.expected,
    )
