"""The file of the state directory in which what proxies refuse for certain outlives a restart."""

from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.files import read, write_private
from delivery.quarantine import verdicts
from delivery.quarantine.verdicts import Verdict, VerdictsError

VERDICTS_FILE: Final = "rejected-policy.json"

_log = structlog.get_logger(__name__)


class KeptVerdicts:
    """Verdicts in a file, which is replaced whole or not at all. Never raises: they can be found again.

    What cannot be read or written is said in the log. Of a damaged file nothing is used, and the next
    verdicts take its place.
    """

    def __init__(self, state: Path) -> None:
        self._path = state / VERDICTS_FILE

    def read(self) -> tuple[Verdict, ...]:
        """Return what was kept; nothing where there is no such file, or none that can be used."""
        try:
            content = read(self._path)
            return () if content is None else verdicts.read(content)
        except VerdictsError as error:
            why = f"{self._path} is damaged, or of another version: {error}"
        except StateError as error:
            why = str(error)
        _log.error("what proxies refused is not known; they refuse it once more", reason=why)
        return ()

    def write(self, found: tuple[Verdict, ...]) -> None:
        """Put these in place of what was kept; to be called in a thread."""
        try:
            write_private(self._path, verdicts.written(found))
        except StateError as error:
            _log.error(
                "what proxies refuse is not kept: after a restart they refuse it again", reason=str(error)
            )
