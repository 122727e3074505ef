"""How certificates are asked for: one by one, or many at once where the issuer is across a network."""

import threading
import time
from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from typing import Final, Protocol

from certs.errors import CertificateError
from certs.keys.pair import Pair
from certs.manager import Request
from meshwright.mesh.identity import ServiceIdentity

AT_ONCE: Final = 8
PATIENCE_SECONDS: Final = 1.0
"""How long a wave waits for an issuer across a network: what comes later is served by a later one."""

Need = tuple[ServiceIdentity, tuple[str, ...]]
"""An identity, and the DNS names of its certificate."""

Answer = tuple[Pair, str] | CertificateError
"""What came of a request: a pair, and why it could not be kept; or why there is none."""


class IssuingStrategy(Protocol):
    """Has requests answered; for one caller at a time, in whatever thread."""

    def ask(
        self, requests: Mapping[Need, Request], now: datetime, again: Container[ServiceIdentity] = ()
    ) -> Mapping[Need, Answer]:
        """Begin with these, now, and return what has been answered, of former ones as well.

        Those of `again` have failed before: an answer for them is not waited for.
        """

    def open(self) -> frozenset[ServiceIdentity]:
        """Return those that are not answered yet."""

    def arrived(self) -> bool:
        """Say whether there are answers that `ask` would return at once; may be called from any thread."""

    def when_arrived(self, tell: Callable[[], None]) -> None:
        """Have `tell` called, in whatever thread, each time an answer comes after `ask` has returned."""

    def close(self) -> None:
        """Begin with nothing more; what is on its way ends by itself."""


class SequentialIssuing:
    """Each is answered before the next is asked: for an issuer that has its key at hand."""

    def ask(
        self, requests: Mapping[Need, Request], now: datetime, again: Container[ServiceIdentity] = ()
    ) -> Mapping[Need, Answer]:
        """Answer all of them."""
        del again
        return {need: _answer(request, now) for need, request in requests.items()}

    def open(self) -> frozenset[ServiceIdentity]:
        """Return none."""
        return frozenset()

    def arrived(self) -> bool:
        """Say no."""
        return False

    def when_arrived(self, tell: Callable[[], None]) -> None:
        """Do nothing: all answers come at once."""

    def close(self) -> None:
        """Do nothing."""


class ConcurrentIssuing:
    """AT_ONCE requests at a time, in threads; whoever asks waits PATIENCE_SECONDS for those that are new.

    Not again and again for an issuer that is silent: it would hold up what has nothing to do with it.
    """

    def __init__(
        self, patience: float = PATIENCE_SECONDS, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = patience
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(AT_ONCE, "issuer")
        self._lock = threading.Lock()
        self._open: dict[Need, Future[Answer]] = {}
        self._tell: Callable[[], None] = _nobody

    def ask(
        self, requests: Mapping[Need, Request], now: datetime, again: Container[ServiceIdentity] = ()
    ) -> Mapping[Need, Answer]:
        """Begin with those that are not on their way, and return what was answered within the patience."""
        asked, fresh = self._seconds(), list[Future[Answer]]()
        for need, request in requests.items():
            if need not in self._open:
                future = self._pool.submit(self._answered, request, now, asked)
                with self._lock:
                    self._open[need] = future
                future.add_done_callback(self._told)
                if need[0] not in again:
                    fresh.append(future)
        wait(fresh, self._patience)
        with self._lock:
            done = {need: each for need, each in self._open.items() if each.done()}
            for need in done:
                del self._open[need]
        return {need: each.result() for need, each in done.items()}

    def open(self) -> frozenset[ServiceIdentity]:
        """Return those on their way."""
        with self._lock:
            return frozenset(identity for identity, _ in self._open)

    def arrived(self) -> bool:
        """Say whether one is done."""
        with self._lock:
            return any(each.done() for each in self._open.values())

    def when_arrived(self, tell: Callable[[], None]) -> None:
        """Take note of whom to tell."""
        self._tell = tell

    def close(self) -> None:
        """Begin with nothing more; what is on its way ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answered(self, request: Request, now: datetime, asked: float) -> Answer:
        """Answer a request whose turn has come: at a moment that may be minutes after it was asked.

        An issuer elsewhere begins a certificate by its own clock, so one that were measured by the moment of
        asking would not be valid yet, and all of a long queue in vain.
        """
        return _answer(request, now + timedelta(seconds=self._seconds() - asked))

    def _told(self, _: Future[Answer]) -> None:
        self._tell()


def _answer(request: Request, now: datetime) -> Answer:
    try:
        return request(now)
    except CertificateError as error:
        return error


def _nobody() -> None:
    """Tell nobody."""
