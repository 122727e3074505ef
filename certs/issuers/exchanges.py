"""HTTP requests that always end: with an answer, at the time limit, or when the server stops.

A socket timeout applies to each read separately, and not to name resolution. Therefore each request runs in a
separate thread, and the caller waits up to the limit. An abandoned connection is cut, and the daemon thread
does not delay the end of the process.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Final

_LONGEST: Final = 1024 * 1024

Answered = tuple[int, bytes]
"""An HTTP status and the body, cut at _LONGEST bytes."""


@dataclass(frozen=True, slots=True)
class Question:
    """An HTTP request to the server of an issuer. Headers and content may be secret, so `repr` omits them."""

    method: str
    path: str
    content: str | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


class Line(http.client.HTTPConnection):
    """A connection for one request, which any thread may cut at any time; plaintext without `tls`."""

    def __init__(self, host: str, port: int, seconds: float, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port, timeout=seconds)
        self.default_port = http.client.HTTP_PORT if tls is None else http.client.HTTPS_PORT
        self._tls = tls
        self._is_cut = False
        self._connected: socket.socket | None = None

    def connect(self) -> None:
        """Connect to the server. Raises ConnectionAbortedError if `cut` was called before."""
        super().connect()
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
        self._connected = self.sock
        if self._is_cut:
            raise ConnectionAbortedError("cut off")
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def answer(self, question: Question) -> Answered:
        """Send the request, and return the server's answer; raise OSError or HTTPException."""
        self.request(question.method, question.path, question.content, dict(question.headers))
        with self.getresponse() as answer:
            return answer.status, answer.read(_LONGEST)

    def cut(self) -> None:
        """End any wait for the server on this connection; may be called from any thread."""
        self._is_cut = True
        if (connected := self._connected) is not None:
            with suppress(OSError):  # it has been closed
                # Bypass SSLSocket.shutdown: it would drop the TLS session that another thread reads.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)


_Outcome = SimpleQueue[Answered | Exception]


class Exchanges:
    """Pending requests. A stop ends them all and refuses new ones. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[_Outcome] = set()
        self._others: list[Callable[[], None]] = []
        self._is_stopped = False

    def ask(self, line: Line, question: Question, seconds: float) -> Answered:
        """Send a request on a connection, and return the answer.

        Raises OSError, HTTPException, or TimeoutError after this many seconds.
        """
        outcome: _Outcome = SimpleQueue()
        with self._lock:
            if self._is_stopped:
                raise _stopped()
            self._open.add(outcome)
        threading.Thread(
            target=_answered, args=(line, question, outcome), name="issuer question", daemon=True
        ).start()
        try:
            result = outcome.get(timeout=seconds)
        except Empty:
            raise _late(seconds) from None
        finally:
            with self._lock:
                self._open.discard(outcome)
            # After a timeout this ends the thread, which may wait much longer for the server.
            line.cut()
        if isinstance(result, TimeoutError) and result.errno is None:
            raise _late(seconds) from None  # a read timed out at the same limit: report it with the same text
        if isinstance(result, Exception):
            raise result
        return result

    def when_stopped(self, end: Callable[[], None]) -> None:
        """Register a function to end requests of another kind at the stop.

        After a stop the function is called at once.
        """
        with self._lock:
            self._others.append(end)
            is_stopped = self._is_stopped
        if is_stopped:
            end()

    def stop(self) -> None:
        """End all pending requests at once, and refuse new ones."""
        with self._lock:
            self._is_stopped = True
            for outcome in self._open:
                outcome.put(_stopped())
            others = tuple(self._others)
        # Outside the lock, because these functions are foreign code and may block.
        for end in others:
            end()


def _answered(line: Line, question: Question, outcome: _Outcome) -> None:
    try:
        outcome.put(line.answer(question))
    except Exception as error:  # noqa: BLE001 - raised by the caller of `ask`
        outcome.put(error)
    finally:
        line.close()


def _late(seconds: float) -> TimeoutError:
    return TimeoutError(f"timed out after {seconds:g} s")


def _stopped() -> ConnectionAbortedError:
    return ConnectionAbortedError("the server is stopping")
