"""Errors between this program and an API server, each with one sentence for people."""

import enum
import re
from typing import Final, Self

from meshwright.kube.resource import Raw

_LONGEST: Final = 300
"""Characters kept of a text from outside."""

_DAY: Final = 86400

_DENIED: Final = re.compile(r'User "([^"]*)" cannot ')
"""Message of the API server's authorizer. Admission uses the same status with other messages."""

_TURNED_AWAY: Final = re.compile(r"denied (the )?request|failed calling webhook")
"""Messages of webhooks and admission policies after a refusal, with any status, or after a failed call."""

_UNSERVED: Final = "could not find the requested resource"
"""Message for an unknown kind, whose status is the same as for a missing object."""


_ENDING: Final = "because it is being terminated"
"""Message for a namespace during deletion, whose status is the same as for a missing permission."""


class Reason(enum.StrEnum):
    """Kind of a failed request or watch, as counted in metrics."""

    CONFIG = "config"  # a kubeconfig, or a file that it names
    CREDENTIALS = "credentials"  # an exec plug-in, a token's file, a key
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    NONSENSE = "nonsense"  # an answer that is not from an API server
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
    BROKEN = "broken"  # a watch that ended within a response
    INACTIVE = "inactive"  # a watch without any line for too long
    SHORT = "short"  # a watch that ended at once
    DISORDER = "disorder"  # events out of order
    OBJECT = "object"  # one unreadable object


class KubeError(Exception):
    """Base class: a request to the API server has failed. The message is one sentence."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class ConfigError(KubeError):
    """The kubeconfig or a credential is wrong; the message names file, field and the right value."""

    def __init__(self, message: str, reason: Reason = Reason.CONFIG) -> None:
        super().__init__(message, reason)


class ApiUnreachable(KubeError):
    """The API server did not answer in time or at all, or the connection broke."""

    def __init__(self, message: str, reason: Reason = Reason.UNREACHABLE) -> None:
        super().__init__(message, reason)


class Nonsense(KubeError):
    """The answer to a request is not from an API server, or is too large."""

    def __init__(self, message: str, reason: Reason = Reason.NONSENSE) -> None:
        super().__init__(message, reason)


class ApiError(KubeError):
    """The API server refused: status, reason (for example "Forbidden" or "Expired") and message.

    `retry_after` is the requested delay in seconds. `verb` is RBAC's: get, list, watch, create, update,
    patch, delete. `resource` includes the subresource, for example `services/status`. `object_text` is
    the object for the sentence; `named` means a single object.

    `is_of_one` is True if the refusal concerns this object alone (a webhook, an invalid object), so that
    other objects can still be written.
    """

    def __init__(
        self,
        status: int,
        status_reason: str,
        message: str,
        *,
        verb: str,
        resource: str,
        object_text: str,
        named: bool = True,
        retry_after: float | None = None,
    ) -> None:
        self.status, self.status_reason, self.message = status, status_reason, shortened(message)
        self.verb, self.resource, self.retry_after = verb, resource, retry_after
        # Creating an object in a missing namespace returns 404 too, although the kind is served.
        whole = not named and verb != "create"
        self._unserved = status == 404 and (whole or not status_reason or _UNSERVED in message)
        reason = Reason.NOT_SERVED if self._unserved else _reason(status, status_reason)
        if status == 403 and verb in ("create", "patch") and _ENDING in message:
            reason = Reason.NOT_FOUND  # the namespace is being deleted; no permission is missing
        unfit = reason in (Reason.INVALID, Reason.TOO_LARGE)
        is_ours = reason is Reason.FORBIDDEN and (not status_reason or bool(_DENIED.search(message)))
        self.is_of_one = bool(_TURNED_AWAY.search(message)) or unfit or (status == 403 and not is_ours)
        super().__init__(self._sentence(object_text), reason)

    @classmethod
    def from_status(
        cls, status: Raw, *, verb: str, resource: str, object_text: str, named: bool = True
    ) -> Self:
        """Return the error for a Status object that a watch has sent."""
        details = status.get("details")
        seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
        code = status.get("code")
        return cls(
            code if isinstance(code, int) else 500,
            str(status.get("reason") or ""),
            str(status.get("message") or ""),
            verb=verb,
            resource=resource,
            object_text=object_text,
            named=named,
            retry_after=float(min(seconds, _DAY)) if isinstance(seconds, int) and seconds > 0 else None,
        )

    @property
    def is_forbidden(self) -> bool:
        """Return whether the API server refused the request because RBAC does not permit it."""
        return self.reason is Reason.FORBIDDEN

    @property
    def is_not_found(self) -> bool:
        """Return whether the requested object, or its kind, does not exist."""
        return self.reason in (Reason.NOT_FOUND, Reason.NOT_SERVED)

    @property
    def is_conflict(self) -> bool:
        """Return whether another client changed or created the object meanwhile, or owns a field."""
        return self.reason is Reason.CONFLICT

    @property
    def is_gone(self) -> bool:
        """Return whether a resourceVersion, or the continuation of a list, is too old."""
        return self.reason is Reason.GONE

    def _sentence(self, object_text: str) -> str:
        text = self.message or self.status_reason or "the reason is not given"
        match self.status:
            case 401:
                return (
                    f"cannot {self.verb} {object_text}: the API server rejects the credentials (401: "
                    f"{text}): check the token or certificate of the kubeconfig or ServiceAccount"
                )
            case 403 if denied := _DENIED.search(self.message):
                missing = f"`{self.verb}` on `{self.resource}`"
                return f"may not {self.verb} {object_text}: RBAC grants no {missing} to {denied[1]}"
            case 403:
                return f"may not {self.verb} {object_text}: {text}"
            case 404 if self._unserved:
                return (
                    f"cannot {self.verb} {object_text}: the API server does not serve {self.resource} (404)"
                )
            case _:
                return f"cannot {self.verb} {object_text}: {text} ({self.status})"


def _reason(status: int, message: str) -> Reason:
    match status, message:
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
    """Return a text from outside as one line of printable characters, at most _LONGEST of them."""
    line = " ".join("".join(item if item.isprintable() else " " for item in text[: 4 * _LONGEST]).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
