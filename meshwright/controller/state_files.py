"""Data that survives a restart, besides keys and the ledger, each in a file of the state directory.

All such data can be recovered in another way, at some cost. Errors in such a file are logged, and never stop
a server.
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
    """A value that survives a restart. The implementation is a file; a shared store would be another one."""

    def load(self) -> _T:
        """Return the saved value, or the default for a missing or unusable value.

        Never raises; an error is logged with the consequence.
        """

    def keep(self, value: _T) -> None:
        """Replace the saved value atomically. Call this in a thread.

        Never raises; an error is logged once for each cause until writing works again.
        """


@dataclass(frozen=True, slots=True)
class Form(Generic[_T]):
    """Format of a value in a file: default, reader, writer, and log lines for errors.

    `read` raises ValueError, with a clause about the cause, for content that `written` has not produced.
    """

    file: str
    nothing: _T
    read: Callable[[bytes], _T]
    written: Callable[[_T], bytes]
    not_read: str
    not_kept: str


class StateFile(Generic[_T]):
    """A value in a file (see PersistentValue). A damaged file is ignored completely."""

    def __init__(self, state: Path, form: Form[_T]) -> None:
        self._path = state / form.file
        self._form = form
        self._logged_error = ""

    def load(self) -> _T:
        """Return the value in the file; the default, without a file or after an error, which is logged."""
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
        """Write a new value to the file. An error is logged once, and not raised."""
        try:
            write_private(self._path, self._form.written(value))
        except StateError as error:
            # A full disk would otherwise cause a line for each change.
            if (reason := str(error)) != self._logged_error:
                _log.error(self._form.not_kept, reason=reason)
            self._logged_error = reason
        else:
            self._logged_error = ""


DNS_ANSWERS: Final[Form[dns.SavedAnswers]] = Form(
    "dns-answers.json",
    dns.SavedAnswers(),
    dns.read,
    dns.written,
    "saved DNS answers cannot be used; the server resolves every name again first",
    "DNS answers cannot be saved; a restart begins with older answers",
)
"""The last good answers of DNS servers."""

VERDICTS: Final[Form[tuple[Verdict, ...]]] = Form(
    "rejected-policy.json",
    (),
    verdicts.read,
    verdicts.written,
    "saved rejections cannot be used; proxies reject the same resources once more",
    "rejections cannot be saved; after a restart proxies reject the same resources again",
)
"""Resources and units of policy that proxies certainly reject."""
