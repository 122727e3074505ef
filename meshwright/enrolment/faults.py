"""Log lines about failed requests and closed connections at the enrolment ports, with repetitions as counts.

Strangers can cause both. A line for each would let anyone with access to a port fill the log.
"""

from collections.abc import Callable

import structlog

from certs.errors import CertificateError, RequestError
from meshwright.enrolment.proofs.contract import ProofPending, ProofUndecided
from meshwright.serving.repeated_lines import RepeatedLines

_log = structlog.get_logger("enrolment.server")


class Faults:
    """Writer of the log lines about failures at one enrolment port; use from one event loop."""

    def __init__(self) -> None:
        self._causes = RepeatedLines(_log_ended_again)
        self._failures = RepeatedLines(_log_failed_again)

    def failed(self, error: Exception) -> None:
        """Log an error on our side. Refusals are logged by the service, where the request was refused."""
        match error:
            case ProofPending():
                self._log_once("join postponed", error, _log.info)
            case ProofUndecided():
                self._log_once("proof cannot be verified now", error, _log.error)
            case CertificateError() if not isinstance(error, RequestError):
                self._log_once("certificate signing failed", error, _log.error)
            case _ if self._failures.first(f"request failed: {type(error).__name__}"):
                _log.error("request failed", exc_info=error)
            case _:
                pass  # a repetition, which `first` has counted

    def ended(self, address: str, cause: str) -> None:
        """Log a client connection closed by the server because of an exceeded limit."""
        if self._causes.first(cause):
            _log.warning("enrolment connections closed by the server", cause=cause, count=1, last=address)

    def flush(self) -> None:
        """Log the counts of repeated failures not logged yet, when the port closes."""
        self._causes.flush()
        self._failures.flush()

    def _log_once(self, event: str, error: Exception, log: Callable[..., object]) -> None:
        if self._failures.first(event):
            log(event, reason=str(error))


def _log_ended_again(cause: str, count: int) -> None:
    _log.warning("enrolment connections closed by the server", cause=cause, count=count)


def _log_failed_again(reason: str, count: int) -> None:
    _log.warning("requests failed again", what=reason, count=count)
