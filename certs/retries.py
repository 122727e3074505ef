"""When what could not be issued is tried again: for each identity by itself."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from certs.errors import CertificateError
from certs.renewal import LONGEST_RETRY, Validity, retry_after
from meshwright.mesh.identity import ServiceIdentity

_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Failure:
    """What has failed so many times in a row, why the last time, and when it is tried again."""

    times: int
    error: CertificateError
    again: datetime


class Retries:
    """The identities that could not be certified; `chance` yields a number from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self.failures: dict[ServiceIdentity, Failure] = {}

    def failed(
        self, identity: ServiceIdentity, error: CertificateError, held: Validity | None, now: datetime
    ) -> None:
        """Take note of a failure; `held` is what is in force meanwhile.

        One that differs from that of before in numbers alone, as in the time at which it was, keeps the words
        of that: other words are another problem to whoever is told of problems.
        """
        before = self.failures.get(identity)
        if before is not None and _is_same(before.error, error):
            error = before.error
        times = 1 if before is None else before.times + 1
        left = timedelta(0) if held is None else held.not_after - now
        again = now + retry_after(times, left, self._chance())
        self.failures[identity] = Failure(times, error, again)

    def done(self, identity: ServiceIdentity) -> None:
        """Forget an identity: it was certified, or nobody needs it."""
        self.failures.pop(identity, None)

    def waits(self, identity: ServiceIdentity, now: datetime) -> bool:
        """Say whether its next try is still to come; a clock that was set back has it tried at once."""
        failure = self.failures.get(identity)
        return failure is not None and now < failure.again <= now + LONGEST_RETRY

    def due(self, now: datetime) -> set[ServiceIdentity]:
        """Return those that are to be tried now."""
        return {each for each in self.failures if not self.waits(each, now)}


def _is_same(before: CertificateError, error: CertificateError) -> bool:
    return type(before) is type(error) and _words(before) == _words(error)


def _words(error: CertificateError) -> str:
    return _NUMBERS.sub("0", str(error))
