"""What goes wrong between us and an API server, in sentences for people."""

import enum
import re
from typing import Final, Self

from meshwright.kube.resource import Raw

_LONGEST: Final = 300
"""Characters of somebody else's words that are kept."""

_DAY: Final = 86400

_DENIED: Final = re.compile(r'User "([^"]*)" cannot ')
"""How the API server's authorizer says no; admission says it in other words, with the same status."""

_TURNED_AWAY: Final = re.compile(r"denied (the )?request|failed calling webhook")
"""How webhooks and admission policies say no, with whatever status they like, or cannot be asked."""

_UNSERVED: Final = "could not find the requested resource"
"""How it says that it has no such kind, with the status of an object that is not there."""


_ENDING: Final = "because it is being terminated"
"""How it says that nothing new is let into a namespace that goes, with the status of what is not allowed."""


class Reason(enum.StrEnum):
    """What kind of failure it was: the words by which failures are counted."""

    CONFIG = "config"  # a kubeconfig, or what it names
    CREDENTIALS = "credentials"  # an exec plug-in, a token's file, a key
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    NONSENSE = "nonsense"  # an answer that no API server gives
    TOO_LARGE = "too-large"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    NOT_SERVED = "not-served"
    CONFLICT = "conflict"
    GONE = "gone"
    INVALID = "invalid"
    THROTTLED = "throttled"
    SERVER = "server"
    REFUSED = "refused"
    BROKEN = "broken"  # a watch that ended in the midst
    INACTIVE = "inactive"  # a watch that said nothing for too long
    SHORT = "short"  # a watch that ended as soon as it had begun
    DISORDER = "disorder"  # events that were not in order
    OBJECT = "object"  # one object that could not be read


class KubeError(Exception):
    """The API server did not do what was asked, whoever is at fault; the message is one sentence."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class ConfigError(KubeError):
    """What says where the server is and who we are is wrong: file, field and what would be right."""

    def __init__(self, message: str, reason: Reason = Reason.CONFIG) -> None:
        super().__init__(message, reason)


class ApiUnreachable(KubeError):
    """Nobody answered, or not in time, or no longer."""

    def __init__(self, message: str, reason: Reason = Reason.UNREACHABLE) -> None:
        super().__init__(message, reason)


class Nonsense(KubeError):
    """Somebody answered, but not as an API server does, or more than can be taken."""

    def __init__(self, message: str, reason: Reason = Reason.NONSENSE) -> None:
        super().__init__(message, reason)


class ApiError(KubeError):
    """The API server refused: its status, its own reason ("Forbidden", "Expired") and message.

    `retry_after` are the seconds that it asks us to wait. `verb` is RBAC's: get, list, watch, create, update,
    patch, delete; `resource` has the subresource where there is one (`services/status`). `what` is that of
    which it was asked; `named` says that it is one object.
    """

    def __init__(
        self,
        status: int,
        status_reason: str,
        message: str,
        *,
        verb: str,
        resource: str,
        what: str,
        named: bool = True,
        retry_after: float | None = None,
    ) -> None:
        self.status, self.status_reason, self.message = status, status_reason, shortened(message)
        self.verb, self.resource, self.retry_after = verb, resource, retry_after
        # What is made without its namespace is not found either, and that is no fault of its kind.
        whole = not named and verb != "create"
        self._unserved = status == 404 and (whole or not status_reason or _UNSERVED in message)
        reason = Reason.NOT_SERVED if self._unserved else _reason(status, status_reason)
        if status == 403 and verb in ("create", "patch") and _ENDING in message:
            reason = Reason.NOT_FOUND  # its namespace is as good as gone, and nobody's rights are at fault
        unfit = reason in (Reason.INVALID, Reason.TOO_LARGE)
        is_ours = reason is Reason.FORBIDDEN and (not status_reason or bool(_DENIED.search(message)))
        self.is_of_one = bool(_TURNED_AWAY.search(message)) or unfit or (status == 403 and not is_ours)
        super().__init__(self._sentence(what), reason)

    @classmethod
    def of(cls, status: Raw, *, verb: str, resource: str, what: str, named: bool = True) -> Self:
        """Return the refusal that a Status object tells of, as watches send them."""
        details = status.get("details")
        seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
        code = status.get("code")
        return cls(
            code if isinstance(code, int) else 500,
            str(status.get("reason") or ""),
            str(status.get("message") or ""),
            verb=verb,
            resource=resource,
            what=what,
            named=named,
            retry_after=float(min(seconds, _DAY)) if isinstance(seconds, int) and seconds > 0 else None,
        )

    @property
    def is_forbidden(self) -> bool:
        """Whether we may not do this."""
        return self.reason is Reason.FORBIDDEN

    @property
    def is_not_found(self) -> bool:
        """Whether there is no such object, or no such kind."""
        return self.reason in (Reason.NOT_FOUND, Reason.NOT_SERVED)

    @property
    def is_conflict(self) -> bool:
        """Whether somebody else changed or made the object, or another field manager has the field."""
        return self.reason is Reason.CONFLICT

    @property
    def is_gone(self) -> bool:
        """Whether a version, or the continuation of a list, is too old."""
        return self.reason is Reason.GONE

    def _sentence(self, what: str) -> str:
        said = self.message or self.status_reason or "no reason given"
        match self.status:
            case 401:
                return (
                    f"cannot {self.verb} {what}: the API server does not accept our credentials (401: {said})"
                )
            case 403 if denied := _DENIED.search(self.message):
                missing = f"`{self.verb}` on `{self.resource}`"
                return f"may not {self.verb} {what}: RBAC grants no {missing} to {denied[1]}"
            case 403:
                return f"may not {self.verb} {what}: {said}"
            case 404 if self._unserved:
                return f"cannot {self.verb} {what}: the API server does not serve {self.resource} (404)"
            case _:
                return f"cannot {self.verb} {what}: {said} ({self.status})"


def _reason(status: int, said: str) -> Reason:
    match status, said:
        case (410, _) | (_, "Expired" | "Gone"):
            return Reason.GONE
        case (401, _):
            return Reason.UNAUTHORIZED
        case (403, _):
            return Reason.FORBIDDEN
        case (404, _):
            return Reason.NOT_FOUND
        case (409, _):
            return Reason.CONFLICT
        case (400 | 415 | 422, _):
            return Reason.INVALID
        case (413, _):
            return Reason.TOO_LARGE
        case (429, _):
            return Reason.THROTTLED
        case (408 | 504, _):
            return Reason.TIMEOUT
        case _:
            return Reason.SERVER if status >= 500 else Reason.REFUSED


def shortened(text: str) -> str:
    """Return somebody else's words as one line of printable characters that is not too long."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text[: 4 * _LONGEST]).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
