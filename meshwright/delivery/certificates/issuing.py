"""Issuing strategies: one request after the other, or many at once for an issuer across a network."""

import threading
import time
from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from typing import ClassVar, Final, Protocol

from certs.errors import CertificateError
from certs.manager import Request
from certs.state.stored_pair import IssuedPair
from meshwright.mesh.identity import ServiceIdentity

AT_ONCE: Final = 8
PATIENCE_SECONDS: Final = 1.0
"""Maximum seconds that a wave waits for a remote issuer. Later answers are served by a later wave."""

Need = tuple[ServiceIdentity, tuple[str, ...]]
"""An identity, and the DNS names in the certificate, for example `("cart.shop.svc.cluster.local",)`."""

Answer = IssuedPair | CertificateError
"""Result of a request: the key pair to use, or the error."""


class IssuingStrategy(Protocol):
    """Way of sending certificate requests to the issuer. One caller at a time, in any thread."""

    is_remote: ClassVar[bool]
    """Whether the issuer is across a network, so that several servers request each certificate only once."""

    def ask(
        self, requests: Mapping[Need, Request], now: datetime, again: Container[ServiceIdentity] = ()
    ) -> Mapping[Need, Answer]:
        """Start these requests at the time `now`; return all new answers, also to earlier requests.

        Identities in `again` have failed before. Their answers are not waited for, because an unresponsive
        issuer would otherwise delay every wave.
        """

    def open(self) -> frozenset[ServiceIdentity]:
        """Return the identities with certificate requests not answered by the issuer yet."""

    def arrived(self) -> bool:
        """Return whether `ask` would return an issuer's answer at once; may be called from any thread."""

    def when_arrived(self, notify: Callable[[], None]) -> None:
        """Call `notify`, in any thread, for each answer of the issuer after `ask` has returned."""

    def close(self) -> None:
        """Start no further requests; running requests finish by themselves."""


class SequentialIssuing:
    """Strategy for an issuer with a local key: each request is answered before the next one starts."""

    is_remote: ClassVar = False

    def ask(
        self, requests: Mapping[Need, Request], now: datetime, again: Container[ServiceIdentity] = ()
    ) -> Mapping[Need, Answer]:
        """Send each certificate request to the issuer, and return all answers."""
        del again
        return {need: _answer(request, now) for need, request in requests.items()}

    def open(self) -> frozenset[ServiceIdentity]:
        """Return an empty set: every request is answered within `ask`."""
        return frozenset()

    def arrived(self) -> bool:
        """Return False, because every answer is returned by `ask` itself."""
        return False

    def when_arrived(self, notify: Callable[[], None]) -> None:
        """Do nothing, because all answers arrive within `ask`."""

    def close(self) -> None:
        """Do no work, because no request runs outside of `ask`."""


class ConcurrentIssuing:
    """Strategy for a remote issuer: up to AT_ONCE requests at a time, in threads.

    `ask` waits up to `patience` seconds for requests of identities that have not failed before. Requests that
    failed before are not waited for: an unresponsive issuer must not delay unrelated changes again and again.
    """

    is_remote: ClassVar = True

    def __init__(
        self, patience: float = PATIENCE_SECONDS, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = patience
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(AT_ONCE, "issuer")
        self._lock = threading.Lock()
        self._open: dict[Need, Future[Answer]] = {}
        self._on_arrival: Callable[[], None] = _ignore_answer

    def ask(
        self, requests: Mapping[Need, Request], now: datetime, again: Container[ServiceIdentity] = ()
    ) -> Mapping[Need, Answer]:
        """Start the requests not running yet; return the issuer's answers received within the patience."""
        asked, fresh = self._seconds(), list[Future[Answer]]()
        for need, request in requests.items():
            if need not in self._open:
                future = self._pool.submit(self._answer_later, request, now, asked)
                with self._lock:
                    self._open[need] = future
                # After the entry in `_open`, because an answer may arrive at once and in another thread.
                future.add_done_callback(self._notify)
                if need[0] not in again:
                    fresh.append(future)
        wait(fresh, self._patience)
        with self._lock:
            done = {need: item for need, item in self._open.items() if item.done()}
            for need in done:
                del self._open[need]
        return {need: item.result() for need, item in done.items()}

    def open(self) -> frozenset[ServiceIdentity]:
        """Return the identities with a running certificate request."""
        with self._lock:
            return frozenset(identity for identity, _ in self._open)

    def arrived(self) -> bool:
        """Return whether the issuer has answered a request since the last `ask`."""
        with self._lock:
            return any(future.done() for future in self._open.values())

    def when_arrived(self, notify: Callable[[], None]) -> None:
        """Set the function to be called when an answer of the issuer arrives."""
        self._on_arrival = notify

    def close(self) -> None:
        """Start no further requests; running requests finish by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answer_later(self, request: Request, now: datetime, requested_at: float) -> Answer:
        """Answer a request when a thread is free, which may be minutes after `ask`.

        The validity begins at the current time, not at the time of `ask`: a remote issuer begins a
        certificate by its own clock, so a certificate judged by an earlier moment would count as not valid
        yet, and be refused.
        """
        return _answer(request, now + timedelta(seconds=self._seconds() - requested_at))

    def _notify(self, _: Future[Answer]) -> None:
        self._on_arrival()


def _answer(request: Request, now: datetime) -> Answer:
    try:
        return request(now)
    except CertificateError as error:
        return error


def _ignore_answer() -> None:
    """Do no work: default for the function called when an answer of the issuer arrives."""
