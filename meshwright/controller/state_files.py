"""What outlives a restart besides keys and the ledger, each in a file of the state directory.

All of it can be found out again, at a price: what is wrong with such a file is said, and ends no server.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import structlog

from certs.errors import StateError
from certs.state.files import read, write_private
from meshwright.delivery.quarantine import verdicts
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.providers.dns import last_answers as dns

_T = TypeVar("_T")

_log = structlog.get_logger("controller.kept")


class PersistentValue(Protocol[_T]):
    """A thing that outlives a restart. Ours is a file; what several servers share has its place beside it."""

    def load(self) -> _T:
        """Return what was kept; what there is without, where nothing was, or nothing that can be used.

        Never raises: what is wrong is in the log, with what it costs.
        """

    def keep(self, value: _T) -> None:
        """Keep this in the place of what was kept, whole or not at all. To be called in a thread.

        Never raises: what is wrong is in the log, once for each reason until it works again.
        """


@dataclass(frozen=True, slots=True)
class Form(Generic[_T]):
    """How a thing is written to a file, what there is without one, and what it costs to be without.

    `read` raises ValueError, which says in a clause why, for what `written` has not written.
    """

    file: str
    nothing: _T
    read: Callable[[bytes], _T]
    written: Callable[[_T], bytes]
    not_read: str
    not_kept: str


class StateFile(Generic[_T]):
    """A thing that is kept in a file, as PersistentValue has it. Of a damaged file nothing is used."""

    def __init__(self, state: Path, form: Form[_T]) -> None:
        self._path = state / form.file
        self._form = form
        self._said = ""

    def load(self) -> _T:
        """Return what the file holds; nothing where there is none that can be used."""
        try:
            content = read(self._path)
            return self._form.nothing if content is None else self._form.read(content)
        except ValueError as error:
            why = f"{self._path} is damaged, or of another version: {error}"
        except StateError as error:
            why = str(error)
        _log.error(self._form.not_read, reason=why)
        return self._form.nothing

    def keep(self, value: _T) -> None:
        """Replace the file."""
        try:
            write_private(self._path, self._form.written(value))
        except StateError as error:
            if (reason := str(error)) != self._said:
                _log.error(self._form.not_kept, reason=reason)
            self._said = reason
        else:
            self._said = ""


DNS_ANSWERS: Final[Form[dns.SavedAnswers]] = Form(
    "dns-answers.json",
    dns.SavedAnswers(),
    dns.read,
    dns.written,
    "the kept DNS answers are not used; every name is asked for first",
    "DNS answers are not kept: a restart would begin with older ones",
)
"""The last good answers of nameservers."""

VERDICTS: Final[Form[tuple[Verdict, ...]]] = Form(
    "rejected-policy.json",
    (),
    verdicts.read,
    verdicts.written,
    "what proxies refused is not known; they refuse it once more",
    "what proxies refuse is not kept: after a restart they refuse it again",
)
"""What proxies refuse for certain."""
