"""The file of the state directory in which the DNS's last good answers outlive a restart."""

from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.files import read, write_private
from providers.dns import kept as dns_kept
from providers.dns.kept import Kept, KeptError

ANSWERS_FILE: Final = "dns-answers.json"

_log = structlog.get_logger(__name__)


class DnsAnswers:
    """Answers in a file, which is replaced whole or not at all. Never raises: without them a server runs on.

    What cannot be read or written is said in the log, once for each reason. Of a damaged file nothing is
    used, and the next answers take its place.
    """

    def __init__(self, state: Path) -> None:
        self._path = state / ANSWERS_FILE
        self._said = ""

    def read(self) -> Kept:
        """Return what was kept; nothing where there is no such file, or none that can be used."""
        try:
            content = read(self._path)
            return dns_kept.read(content) if content is not None else Kept()
        except KeptError as error:
            why = f"{self._path} is damaged, or of another version: {error}"
        except StateError as error:
            why = str(error)
        _log.error("the kept DNS answers are not used; every name is asked for first", reason=why)
        return Kept()

    def write(self, kept: Kept) -> None:
        """Put these in place of what was kept; to be called in a thread."""
        try:
            write_private(self._path, dns_kept.written(kept))
        except StateError as error:
            if (reason := str(error)) != self._said:
                _log.error("DNS answers are not kept: a restart would begin with older ones", reason=reason)
            self._said = reason
        else:
            self._said = ""
