"""Errors between this program and etcd, each with one sentence for people, without contents of keys."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import grpc
import grpc.aio

_LONGEST: Final = 300
"""Characters kept of a text from outside."""

_PASSING: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)
"""Status codes after which another attempt, or another member, may succeed."""

_PASSING_TEXTS: Final = ("etcdserver: too many requests", "etcdserver: not leader")
"""Messages of passing refusals whose status code is also used for others."""

_NO_LEADER: Final = "etcdserver: no leader"
_OLD_TOKEN: Final = "etcdserver: revision of auth store is old"  # noqa: S105 - a message
_WRONG_PASSWORD: Final = "etcdserver: authentication failed"  # noqa: S105 - a message


class EtcdError(Exception):
    """Base class: a call to etcd has failed. The message is one sentence."""


class AccessError(EtcdError):
    """An endpoint or a credential is wrong; the message names the setting or file and the right value."""


class UnavailableError(EtcdError):
    """The store does not answer now. Unless `is_undone` is set, the call may be done, now or later."""

    def __init__(self, message: str, *, is_undone: bool = False) -> None:
        super().__init__(message)
        self.is_undone = is_undone


class RefusedError(EtcdError):
    """The store refuses the call, and will refuse the same call later: for example a missing permission."""


class TokenError(RefusedError):
    """The store has forgotten the token of our user."""


class RevisionGoneError(EtcdError):
    """The store lacks the history from a revision on: compacted, or never there."""


class LeaseNotFoundError(EtcdError):
    """The lease is over, or was never granted."""


@contextmanager
def failures_as_errors(call: str, endpoint: str) -> Iterator[None]:
    """Raise failures of gRPC within the block as EtcdError.

    The calls of a closed channel end like a cancelled task. Only a cancelled task may end in this way,
    because another one would vanish without an error.
    """
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise error_of(error, call, endpoint) from None
    except asyncio.InvalidStateError:
        raise UnavailableError(f"etcd at {endpoint} has ended {call}") from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise UnavailableError(f"the connection to etcd at {endpoint} ended during {call}") from None


def error_of(error: grpc.aio.AioRpcError, call: str, endpoint: str) -> EtcdError:
    """Return the error for a failed call, for example `Range` at `https://10.0.0.1:2379`."""
    code, text = error.code(), shortened(error.details() or "")
    place = f"etcd at {endpoint}"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return UnavailableError(f"{place} does not answer {call} in time")
    if code in _PASSING or text in _PASSING_TEXTS:
        return UnavailableError(f"{place} cannot answer {call} now: {text}", is_undone=text == _NO_LEADER)
    return _refusal(code, f"{place} refuses {call}", text or code.name)


def _refusal(code: grpc.StatusCode, sentence: str, text: str) -> EtcdError:
    if code is grpc.StatusCode.OUT_OF_RANGE:
        return RevisionGoneError(f"{sentence}: {text}")
    if code is grpc.StatusCode.NOT_FOUND:
        return LeaseNotFoundError(f"{sentence}: {text}")
    if code is grpc.StatusCode.UNAUTHENTICATED or text == _OLD_TOKEN:
        return TokenError(f"{sentence}: {text}")
    if code is grpc.StatusCode.PERMISSION_DENIED:
        role = "grant the user a role with read and write permission for the prefix of this mesh"
        return RefusedError(f"{sentence}: {text}: {role}")
    if text.startswith(_WRONG_PASSWORD):
        return RefusedError(f"{sentence}: user or password is wrong: check the file with both")
    return RefusedError(f"{sentence}: {text}")


def shortened(text: str) -> str:
    """Return a text from outside as one line of printable characters, at most _LONGEST of them."""
    line = " ".join("".join(item if item.isprintable() else " " for item in text[: 4 * _LONGEST]).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
