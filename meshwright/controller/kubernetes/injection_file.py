"""Configuration of injection in a file, read again after changes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.config_file import only_document
from meshwright.kubernetes.injection.configuration.current import CurrentConfig, ReadCounter

LOOK_SECONDS: Final = 0.2
"""Seconds between two checks. A changed file is read when two checks in a row find the same state."""


class InjectionFile(CurrentConfig):
    """Injection configuration from a file, or the default configuration if the settings name no file.

    A changed file is recognised by its identity: device, inode, size and modification time. In a mounted
    ConfigMap a symbolic link is replaced, which changes the identity as well.
    """

    def __init__(self, path: Path | None, home: str, counted: ReadCounter) -> None:
        super().__init__(home, counted)
        self._path = path
        self._seen = self._read_as = self._file_identity()
        self._read()

    @property
    def is_one(self) -> bool:
        """Return whether the settings name a file with the injection configuration."""
        return self._path is not None

    async def following(self, changed: Callable[[], None]) -> None:
        """Read the file after each change, and call `changed`, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            before, self._seen = self._seen, self._file_identity()
            # Two equal looks in a row: a file that is still being written is not read.
            if before == self._seen != self._read_as:
                self._read_as = self._seen
                self._read()
                changed()

    def _file_identity(self) -> tuple[int, ...] | None:
        """Return device, inode, size and modification time of the file, or `None` without a readable file."""
        try:
            result = None if self._path is None else self._path.stat()
        except OSError:
            return None
        return None if result is None else (result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns)

    def _read(self) -> None:
        try:
            document = None if self._path is None else only_document(self._path, "the injection config file")
        except SettingsError as error:
            self.refuse(str(error))
        else:
            self.take(document, str(self._path))
