"""Retries of failed issuances, for each identity separately."""

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
    """Failed issuances for an identity: consecutive failures, last error, and time of the next try."""

    times: int
    error: CertificateError
    again: datetime


class Retries:
    """The identities with failed issuances; `chance` returns a number from 0 to 1."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self.failures: dict[ServiceIdentity, Failure] = {}

    def failed(
        self, identity: ServiceIdentity, error: CertificateError, in_force: Validity | None, now: datetime
    ) -> None:
        """Record a failure; `in_force` is the certificate in force meanwhile.

        If an error differs from the one before only in numbers, for example in a time, the earlier text is
        kept, because each text is reported as a separate problem.
        """
        before = self.failures.get(identity)
        if before is not None and _is_same(before.error, error):
            error = before.error
        times = 1 if before is None else before.times + 1
        left = timedelta(0) if in_force is None else in_force.not_after - now
        again = now + retry_after(times, left, self._chance())
        self.failures[identity] = Failure(times, error, again)

    def done(self, identity: ServiceIdentity) -> None:
        """Forget an identity after a success, or when its certificate is not needed any more."""
        self.failures.pop(identity, None)

    def waits(self, identity: ServiceIdentity, now: datetime) -> bool:
        """Return whether the next try is in the future; after a clock was set back the answer is False."""
        failure = self.failures.get(identity)
        return failure is not None and now < failure.again <= now + LONGEST_RETRY

    def due(self, now: datetime) -> set[ServiceIdentity]:
        """Return the identities with a failed issuance to try again now."""
        return {failure for failure in self.failures if not self.waits(failure, now)}


def _is_same(before: CertificateError, error: CertificateError) -> bool:
    return type(before) is type(error) and _words(before) == _words(error)


def _words(error: CertificateError) -> str:
    return _NUMBERS.sub("0", str(error))
