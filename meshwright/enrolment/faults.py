"""What the enrolment ports log of failed requests and ended connections, with repeats as counts.

Both can be caused by strangers: a line for each would let whoever reaches a port fill the log.
"""

from collections.abc import Callable

import structlog

from certs.errors import CertificateError, RequestError
from meshwright.enrolment.proofs.contract import ProofPending, ProofUndecided
from meshwright.serving.repeated_lines import RepeatedLines

_log = structlog.get_logger("enrolment.server")


class Faults:
    """Log lines of one port; used from one event loop."""

    def __init__(self) -> None:
        self._causes = RepeatedLines(_ended_again)
        self._failures = RepeatedLines(_failed_again)

    def failed(self, error: Exception) -> None:
        """Log what went wrong on our side; a refusal is not logged here but where the request was refused."""
        match error:
            case ProofPending():
                self._say("join put off", error, _log.info)
            case ProofUndecided():
                self._say("proof not judged", error, _log.error)
            case CertificateError() if not isinstance(error, RequestError):
                self._say("nothing signed", error, _log.error)
            case _ if self._failures.first(f"request failed: {type(error).__name__}"):
                _log.error("request failed", exc_info=error)
            case _:
                pass  # counted

    def ended(self, address: str, cause: str) -> None:
        """Log that the connection of a client was ended for what it cost."""
        if self._causes.first(cause):
            _log.warning("connections ended", cause=cause, count=1, last=address)

    def flush(self) -> None:
        """Write all counts that are not written yet: the port closes."""
        self._causes.flush()
        self._failures.flush()

    def _say(self, event: str, error: Exception, say: Callable[..., object]) -> None:
        if self._failures.first(event):
            say(event, reason=str(error))


def _ended_again(cause: str, count: int) -> None:
    _log.warning("connections ended", cause=cause, count=count)


def _failed_again(what: str, count: int) -> None:
    _log.warning("requests failed as before", what=what, count=count)
