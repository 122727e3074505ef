"""A small mesh of manifests, as the controller's parts see it."""

import functools
import gc
import os
import pickle
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from catalog.store.view import MeshSettings, View
from certs.state.sealing import ScryptParameters
from meshwright.cli.offline import reference
from meshwright.providers.directory.source import DirectorySource
from meshwright.specs.reference.shapes import DescribedKind
from tests.meshes import texts

SECONDS = 60.0
"""After so long a test here hangs; alone nearly all take much less than one, and on a busy machine more."""
MANY_SECONDS = 120.0
"""The same for a property, which tries many examples, and for who may be the first to type a command, and
waits for all that commands import."""
COLLECTIONS = (10_000, 10, 50)
"""Thresholds of the collector of garbage."""
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def workload(uuid: str, account: str = "store") -> str:
    """Return the manifest of a workload with a sidecar, in transparent interception."""
    return texts.workload(
        f"w-{uuid}", "10.0.0.1", app="store", account=account, uuid=uuid, spec="ports: [{port: 8080}]"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Limit what each test may take; one that needs more has a limit of its own, and says why."""
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here) and item.get_closest_marker("timeout") is None:
            typed = "typed" in getattr(item, "fixturenames", ())
            tries_many = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
            many = typed or tries_many or item.get_closest_marker("fuzzed") is not None
            item.add_marker(pytest.mark.timeout(MANY_SECONDS if many else SECONDS))


def pytest_collection_finish() -> None:
    """Let the collector of garbage look no more through what was imported: it stays, and is most of all.

    A full collection takes a tenth of a second, so that it runs less often than by default. Tests whose
    subject is garbage collect it themselves. The little garbage of the imports stays as well, because to find
    it takes each process half a second of CPU time.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)


class _Unsynced(sqlite3.Connection):
    """A connection to a database that is not forced onto the disk."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Execute a statement."""
        return super().execute(sql.replace("synchronous = FULL", "synchronous = OFF"), *parameters)


@pytest.fixture(autouse=True, scope="session")
def _unsynced_files() -> Iterator[None]:
    """Write files and databases without waiting for the disk: 3 ms a time, and a commit waits several times.

    Only a power failure tells the difference.
    """
    connect = sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(sqlite3, "connect", partial(connect, factory=_Unsynced))
        yield


@pytest.fixture(autouse=True, scope="session")
def _entry_points_read_once() -> Iterator[None]:
    """Read the installed drivers' entry points once: each time takes the files of all installed packages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meshwright.sidecars.registry.entry_points", functools.cache(entry_points))
        yield


@pytest.fixture(autouse=True, scope="session")
def _kinds_described_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Describe all kinds of manifests in one of the processes of a run: it takes 2 s of CPU time.

    The others read the description. Tests of `probing.described` call that function itself.
    """
    if (run := os.environ.get("PYTEST_XDIST_TESTRUNUID")) is None:
        yield
        return
    file = tmp_path_factory.getbasetemp().parent / f"described-{run}"
    describe = reference.described

    @functools.cache
    def described() -> tuple[DescribedKind, ...]:
        if file.exists():
            result: tuple[DescribedKind, ...] = pickle.loads(file.read_bytes())  # noqa: S301 - ours
            return result
        own = file.with_suffix(f".{os.getpid()}")
        own.write_bytes(pickle.dumps(describe()))
        own.replace(file)
        return describe()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "described", described)
        yield


@pytest.fixture
def cheap_passphrases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretch passphrases for nothing; what they cost otherwise is a test of its own."""
    monkeypatch.setattr(ScryptParameters, "__init__", _cheap)


def _cheap(self: ScryptParameters, n: int = 2, r: int = 1, p: int = 1) -> None:
    for name, value in (("n", n), ("r", r), ("p", p)):
        object.__setattr__(self, name, value)


@pytest.fixture
def now() -> datetime:
    """Return the moment of all this."""
    return NOW


@pytest.fixture
def source_of(tmp_path: Path) -> Callable[..., DirectorySource]:
    """Return a maker of sources from workloads, given as (uuid, ServiceAccount)."""

    def made(*workloads: tuple[str, str]) -> DirectorySource:
        directory = tmp_path / "mesh"
        directory.mkdir(exist_ok=True)
        documents = (texts.service("store"), *(workload(*item) for item in workloads))
        (directory / "mesh.yaml").write_text(texts.joined(*documents))
        source = DirectorySource(directory, lambda: NOW)
        source.load()
        return source

    return made


@pytest.fixture
def view_of(source_of: Callable[..., DirectorySource]) -> Callable[..., View]:
    """Return a maker of views from workloads, given as (uuid, ServiceAccount)."""

    def made(*workloads: tuple[str, str]) -> View:
        source = source_of(*workloads)
        return View.build(source.objects(), MeshSettings())

    return made
