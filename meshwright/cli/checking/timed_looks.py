"""Concurrent observations for checks, each with a time limit."""

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.errors import CommandFailed, UnexpectedResponse

SECONDS: Final = 10.0
"""Limit for one look; connecting to a control plane has steps of 5 s, of which a dead peer takes one."""

_T = TypeVar("_T")


class TimedLook(Generic[_T]):
    """An observation for a check in a separate thread. The thread is abandoned after the time limit."""

    def __init__(self, subject: str, function: Callable[[], _T], seconds: float = SECONDS) -> None:
        self._function = function
        self._seconds = seconds
        self._result: _T | UnavailableCheck = UnavailableCheck(f"timed out after {seconds:g} s")
        # A daemon thread, so that a hanging look does not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=f"look at {subject}", daemon=True)
        self._thread.start()

    def seen(self) -> _T | UnavailableCheck:
        """Return the result, or the reason for a missing one; wait for at most the time limit."""
        self._thread.join(self._seconds)
        return self._result

    def judged(self, name: str, judge: Callable[[_T], Check]) -> Check:
        """Return the check of this name, by `judge`, or as unavailable if the look failed or timed out."""
        result = self.seen()
        return Check.unseen(name, result) if isinstance(result, UnavailableCheck) else judge(result)

    def _run(self) -> None:
        try:
            self._result = self._function()
        except UnexpectedResponse as error:
            self._result = UnavailableCheck(str(error), error.do)
        except CommandFailed as error:
            self._result = UnavailableCheck(str(error))
        except Exception as error:  # noqa: BLE001 - any error becomes the text of this check
            self._result = UnavailableCheck(" ".join(f"{type(error).__name__}: {error}".split()))
