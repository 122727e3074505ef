"""A single request: a socket of the right user, one connection, one answer, without redirects or retries."""

import contextlib
import http.client
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from meshwright.agent.calling.outcomes import Outcome, OwnAnswer, RequestOutcome, own_answer, own_words
from meshwright.agent.calling.response import is_listened_at, is_taken
from meshwright.agent.interception.iptables import ProgramFailed, left_alone
from meshwright.agent.interception.owners import named
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import (
    DENIED_HEADER,
    DIAGNOSIS_HEADER,
    OUTBOUND_PORT,
    OWN_ANSWER_HEADER,
    PROXY_UID,
    UNDELIVERED_HEADER,
)

NOBODY: Final = 65534
"""User of the socket if interception exempts root."""
_MOST_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """A request to `where`; without `method` only a connection, on which nothing is sent.

    With `led` the address is not the sidecar's, but iptables redirects the connection to the sidecar.
    `seconds` is the time limit.
    """

    where: HostPort
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    led: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class _Answer:
    """An HTTP answer: status, headers added by the sidecars, and the beginning of an error's body."""

    status: int
    denied: str
    undelivered: bool
    own: OwnAnswer | None
    text: str = field(repr=False)


_NO_ANSWER: Final = _Answer(0, "", undelivered=False, own=None, text="")


def made(call: Call) -> RequestOutcome:
    """Make the request of a call, and return the outcome; a failed request does not raise."""
    began = time.monotonic()

    def seen(outcome: Outcome, words: str = "", answer: _Answer = _NO_ANSWER) -> RequestOutcome:
        passed = round((time.monotonic() - began) * 1000, 1)
        where, undelivered = str(call.where), answer.undelivered
        return RequestOutcome(
            outcome, where, answer.status, answer.denied, words, passed, undelivered, answer.own
        )

    try:
        connection = _connected(call)
    except OSError as error:
        if call.led and is_listened_at(OUTBOUND_PORT):  # a redirected connection would have been accepted
            return seen(Outcome.NOT_TRIED, _past(os.geteuid()))
        return seen(Outcome.REFUSED, _error_text(error))
    with connection:
        if call.led and not is_taken(connection, OUTBOUND_PORT):
            return seen(Outcome.NOT_TRIED, _past(os.geteuid()))
        try:
            if not call.method:
                return seen(_kept(connection))
            answer = _send_request(connection, call)
        except (http.client.InvalidURL, ValueError) as error:
            return seen(Outcome.NOT_TRIED, f"the request is invalid: {error}")
        except TimeoutError:
            return seen(Outcome.SILENT, f"timed out after {call.seconds:g} s")
        except (OSError, http.client.HTTPException) as error:
            return seen(Outcome.CLOSED, _error_text(error))
    return seen(Outcome.ANSWERED, own_words(answer.status, answer.text), answer)


def _connected(call: Call) -> socket.socket:
    """Return a TCP connection to the address of a call; raise OSError."""
    family = socket.AF_INET6 if ":" in call.where.host else socket.AF_INET
    with _not_left_alone(led=call.led):
        made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.settimeout(call.seconds)
        made.connect((call.where.host, call.where.port))
    except OSError:
        made.close()
        raise
    return made


@contextlib.contextmanager
def _not_left_alone(*, led: bool) -> Iterator[None]:
    """Become a user whose connections are redirected to the sidecar, if root; other users stay unchanged."""
    user = os.geteuid()
    users: frozenset[int] = frozenset()
    if led and user == 0:
        with contextlib.suppress(ProgramFailed):  # a connection that is not redirected is detected later
            users = left_alone()
    if user not in users:
        yield
        return
    os.seteuid(next(number for number in range(NOBODY, 0, -1) if number not in users))
    try:
        yield
    finally:
        os.seteuid(user)


def _send_request(connection: socket.socket, call: Call) -> _Answer:
    """Send the HTTP request of a call; return the answer, for an error with the beginning of the body."""
    http_connection = http.client.HTTPConnection(call.where.host, call.where.port)
    http_connection.sock = connection
    http_connection.putrequest(call.method, call.path, skip_host=True, skip_accept_encoding=True)
    for name, value in call.headers:
        http_connection.putheader(name, value)
    http_connection.putheader(DIAGNOSIS_HEADER, "true")
    http_connection.putheader("Connection", "close")
    http_connection.endheaders()
    with http_connection.getresponse() as answer:
        text = ""
        if answer.status >= 400:  # Envoy's own texts have an error status, and other bodies may be endless
            with contextlib.suppress(OSError, http.client.HTTPException):
                text = answer.read(_MOST_BYTES).decode(errors="replace")
        undelivered = answer.getheader(UNDELIVERED_HEADER) is not None
        own = own_answer(answer.getheader(OWN_ANSWER_HEADER, ""))
        return _Answer(answer.status, answer.getheader(DENIED_HEADER, ""), undelivered, own, text)


def _kept(connection: socket.socket) -> Outcome:
    """Wait without sending until the peer sends or closes, or the time is over; OPEN unless closed."""
    try:
        return Outcome.OPEN if connection.recv(1) else Outcome.CLOSED
    except TimeoutError:
        return Outcome.OPEN
    except OSError:
        return Outcome.CLOSED


def _past(uid: int) -> str:
    if uid == PROXY_UID:
        return (
            f"the request was not sent, because this command runs as {named(uid)}, the user of the "
            "sidecar, whose connections are exempt from interception. In a Pod, run the command in "
            "a debug container, which has another user: `kubectl debug --attach POD "
            "--image=CONTROL-PLANE-IMAGE -- meshwright connectivity --facts JSON`"
        )
    return (
        f"the request was not sent, because the connection of {named(uid)} was not redirected to the "
        "sidecar: interception rules are missing, or they exempt this user or this address"
    )


def _error_text(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
