"""A directory of manifests as the server would read it, without a server."""

import os
from dataclasses import dataclass
from pathlib import Path

from catalog.lint.problems import problems
from catalog.store.view import MeshSettings, View
from cli.errors import OfflineError
from mesh.origins import InFile
from mesh.problems import Problem, Problems, Severity, ordered
from providers.directory.files import DirectoryError, list_directory, read_content
from providers.directory.manifests import Manifests
from sidecars import lint
from sidecars.contract.errors import DriverError
from sidecars.registry import DriverRegistry
from specs.codes import Code


@dataclass(frozen=True, slots=True)
class Offline:
    """What a directory comes to: the view, and everything that the server would say of it."""

    view: View
    problems: Problems


def read(directory: Path, settings: MeshSettings | None = None) -> Offline:
    """Read a directory; raise OfflineError."""
    try:
        listing = list_directory(directory)
    except DirectoryError as error:
        raise OfflineError(str(error)) from error
    manifests = Manifests().apply_each((name, read_content(directory, name)) for name in listing.files)
    try:
        view = View.build(manifests.objects(), settings or MeshSettings())
    except ValueError as error:
        raise OfflineError(str(error)) from error
    found = {*map(_unlisted, listing.unlisted), *manifests.problems(), *problems(view), *_of_drivers(view)}
    return Offline(view, ordered(found))


def _of_drivers(view: View) -> Problems:
    """Return what is wrong between the objects and the drivers installed here, as this environment has it."""
    try:
        drivers = DriverRegistry.discover().drivers
    except DriverError as error:
        raise OfflineError(str(error)) from error
    return lint.problems(view, lint.Installed(drivers, os.environ))


def _unlisted(folder: str) -> Problem:
    expected = "must be a folder that can be listed"
    return Problem(
        code=str(Code.DIRECTORY_UNREADABLE), severity=Severity.ERROR, origin=InFile(folder), expected=expected
    )
