"""The configuration of injection: read from a file as a whole, and again as it changes."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from controller.config_file import only_document
from controller.errors import SettingsError
from injector.configuration import ConfigurationError, InjectionConfig, read
from mesh.names import Namespace

LOOK_SECONDS: Final = 0.2
"""How often the file is looked at; it is read when two looks in turn find the same that was not read yet."""

_log = structlog.get_logger("controller.injection_file")


class InjectionFile:
    """A configuration in a file, or the default one without, with `home` for the control plane's namespace.

    A control plane knows where it is better than a file does. Where a ConfigMap is mounted a link is
    exchanged, so that the file is another one. A bad one changes nothing; if it is the first there is no
    configuration until it is mended.
    """

    def __init__(self, path: Path | None, home: str) -> None:
        self._path, self._home = path, Namespace(home)
        self._seen = self._read_as = self._stands()
        self.config: InjectionConfig | None = None
        self.error = ""
        self._read()

    @property
    def is_one(self) -> bool:
        """Say whether there is a file to follow."""
        return self._path is not None

    async def following(self, changed: Callable[[], None]) -> None:
        """Read it whenever it is another, and say that it has changed, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            before, self._seen = self._seen, self._stands()
            if before == self._seen != self._read_as:
                self._read_as = self._seen
                self._read()
                changed()

    def _stands(self) -> tuple[int, ...] | None:
        """Return what tells a file from the one before; None if it is not there."""
        try:
            found = None if self._path is None else self._path.stat()
        except OSError:
            return None
        return None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def _read(self) -> None:
        again = self.config is not None
        try:
            document = None if self._path is None else only_document(self._path, "the injection config file")
            self.config = replace(read(document, str(self._path)), control_plane_namespace=self._home)
        except (SettingsError, ConfigurationError) as error:
            self.error = " ".join(str(error).split())
            _log.error("injection configuration not taken", reason=self.error, kept=again)
            return
        self.error = ""
        if again:
            _log.info("injection configuration taken", path=str(self._path))
