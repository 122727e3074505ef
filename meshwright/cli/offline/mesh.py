"""Manifests of a directory, a file or standard input, read as the server reads them, without a server."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from catalog.lint.gateway.refusals import with_refused
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
    """Objects from manifests or a cluster, and the problems of single objects."""

    objects: Picture[ObjectKey, SourcedObject] = field(default_factory=Picture)
    problems: Problems = ()
    nothing: str = ""
    """Why the input has no document, as a sentence; empty if there is one."""

    def below(self, other: "LoadedManifests") -> "LoadedManifests":
        """Return these objects and the ones of `other`, which replace ours with the same name."""
        above = {key: self._aged(key, sourced_object) for key, sourced_object in other.objects.items()}
        merged = merge([("above", Picture(above)), ("below", self.objects)])
        claims = {key.claim for key in other.objects}
        # Problems of replaced objects are gone; `other` has the problems of the new ones.
        kept = (
            problem for problem in self.problems if problem.key is None or problem.key.claim not in claims
        )
        return LoadedManifests(Picture(merged.objects()), ordered((*kept, *other.problems)))

    def _aged(self, key: ObjectKey, applied: SourcedObject) -> SourcedObject:
        """Return an object with the creation time of the replaced object, as after `kubectl apply`."""
        before = self.objects.get(key)
        if before is None or created_of(applied.value):
            return applied
        return replace(applied, value=created_at(applied.value, created_of(before.value)))


@dataclass(frozen=True, slots=True)
class OfflineMesh:
    """The mesh of some manifests: view, problems as the server would report them, and number of objects."""

    view: View
    problems: Problems
    objects: int


def read(where: Path, settings: MeshSettings | None = None) -> OfflineMesh:
    """Read a directory, a single file of any name, or `-` (standard input); raise OfflineError."""
    return seen(load_manifests(where), settings)


def load_manifests(where: Path) -> LoadedManifests:
    """Return the objects of a directory, a file, or standard input; raise OfflineError."""
    unlisted: list[UnlistedFolder] = []
    alone = _alone(where)
    try:
        manifests = Manifests().apply_stream(_contents(where, alone, unlisted))
        objects, problems = manifests.objects(), (*map(_unlisted, unlisted), *manifests.problems())
        if objects or problems:
            return LoadedManifests(objects, ordered(problems))
        # Files are read a second time only here, where they hold no object.
        return LoadedManifests(nothing=_reason_for_no_documents(where, _contents(where, alone, unlisted)))
    except DirectoryError as error:
        raise OfflineError(str(error)) from error


def load_nonempty_manifests(where: Path) -> LoadedManifests:
    """Return the result of `load_manifests`; raise OfflineError also for input without any document."""
    loaded_manifests = load_manifests(where)
    if loaded_manifests.nothing:
        raise OfflineError(loaded_manifests.nothing)
    return loaded_manifests


def manifest_files(where: Path) -> Iterator[tuple[str, Content]]:
    """Yield the names and contents of manifest files: a directory, one file, or standard input.

    An unreadable file of a directory is one of the contents. Raises OfflineError.
    """
    alone, unlisted = _alone(where), list[UnlistedFolder]()
    try:
        yield from _contents(where, alone, unlisted)
    except DirectoryError as error:
        raise OfflineError(str(error)) from error
    if unlisted:
        raise OfflineError(f"folder {unlisted[0].folder} of {where}: {unlisted[0].expected}")


def seen(loaded_manifests: LoadedManifests, settings: MeshSettings | None = None) -> OfflineMesh:
    """Return the mesh of loaded objects with all problems; raise OfflineError."""
    try:
        view = View.build(loaded_manifests.objects, settings or MeshSettings())
    except ValueError as error:
        raise OfflineError(str(error)) from error
    of_objects = problems(view, datetime.now(UTC))
    found_problems = {*loaded_manifests.problems, *of_objects, *_of_drivers(view)}
    return OfflineMesh(view, with_refused(ordered(found_problems)), len(loaded_manifests.objects))


def _alone(where: Path) -> tuple[str, str] | None:
    """Return the name and text of a single file, or None for a directory; raise OfflineError.

    In a directory, an unreadable file is one problem among others; a single unreadable file is an error.
    """
    content: Content
    if where == STANDARD_INPUT:
        name, content = "standard input", content_of(read_bytes(MAX_BYTES + 1))
    elif where.exists() and not where.is_dir():
        name, content = where.name, read_named(where)
    else:
        return None
    if not isinstance(content, str):
        why = "it does not exist any more" if content is None else content.expected
        raise OfflineError(f"{name if where == STANDARD_INPUT else where} cannot be read: {why}")
    return name, content


def _contents(
    where: Path, alone: tuple[str, str] | None, unlisted: list[UnlistedFolder]
) -> Iterator[tuple[str, Content]]:
    """Yield names and contents of manifest files, sorted by name; raise DirectoryError.

    Unreadable folders are added to `unlisted`.
    """
    if alone is not None:
        yield alone
    else:
        listing = list_directory(where)
        unlisted.extend(listing.unlisted)
        yield from ((name, read_content(where, name)) for name in listing.files)


def _reason_for_no_documents(where: Path, contents: Iterator[tuple[str, Content]]) -> str:
    """Return the reason why the files contain no document; empty if there is one."""
    files = 0
    for name, content in contents:
        if isinstance(content, str) and documents(content, as_json=name.endswith(".json")):
            return ""
        files += 1
    if not files:
        return f"directory {where} lacks manifests: they are files that end in {', '.join(EXTENSIONS)}"
    what = "standard input" if where == STANDARD_INPUT else str(where)
    return f"{what} lacks a manifest: it is empty, or has only comments"


def _of_drivers(view: View) -> Problems:
    """Return the problems between objects and the sidecar drivers installed with this command."""
    try:
        drivers = DriverRegistry.discover().drivers
    except DriverError as error:
        raise OfflineError(str(error)) from error
    return lint.problems(view, lint.InstalledDrivers(drivers, os.environ))


def _unlisted(result: UnlistedFolder) -> Problem:
    return Problem(
        code=str(Code.DIRECTORY_UNREADABLE),
        severity=result.severity,
        origin=InFile(result.folder),
        expected=result.expected,
    )
