"""Looks at many things at once: none waits for another, and none longer than its time."""

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.errors import CommandFailed, UnexpectedResponse

SECONDS: Final = 10.0
"""For one look; the way to a control plane has steps of five, of which a dead one takes one."""

_T = TypeVar("_T")


class TimedLook(Generic[_T]):
    """A look that has begun, in a thread of its own, which is left behind if it takes too long."""

    def __init__(self, what: str, function: Callable[[], _T], seconds: float = SECONDS) -> None:
        self._function = function
        self._seconds = seconds
        self._found: _T | UnavailableCheck = UnavailableCheck(f"no answer in {seconds:g} s")
        self._thread = threading.Thread(target=self._run, name=f"look at {what}", daemon=True)
        self._thread.start()

    def seen(self) -> _T | UnavailableCheck:
        """Return what was seen, or why nothing was."""
        self._thread.join(self._seconds)
        return self._found

    def judged(self, name: str, judge: Callable[[_T], Check]) -> Check:
        """Return the check of the name, by `judge`, or as unavailable if the look failed or took too long."""
        found = self.seen()
        return Check.unseen(name, found) if isinstance(found, UnavailableCheck) else judge(found)

    def _run(self) -> None:
        try:
            self._found = self._function()
        except UnexpectedResponse as error:
            self._found = UnavailableCheck(str(error), error.do)
        except CommandFailed as error:
            self._found = UnavailableCheck(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is: it is said in its line, and the others go on
            self._found = UnavailableCheck(" ".join(f"{type(error).__name__}: {error}".split()))
