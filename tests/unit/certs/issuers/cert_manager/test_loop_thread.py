"""Tests of the event loop in another thread: a failed start is reported to the caller at once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from certs.errors import IssuerError
from certs.issuers.cert_manager.loop_thread import EventLoopThread


@contextlib.asynccontextmanager
async def _open() -> AsyncIterator[None]:
    yield


class _Lacking(contextlib.AbstractAsyncContextManager[None]):
    """A context that cannot be opened."""

    async def __aenter__(self) -> None:
        raise OSError("too many open files")

    async def __aexit__(self, *how: object) -> None:
        """Do nothing, because it is never reached."""


def test_loop_thread_without_an_event_loop_raises_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may have no file descriptors left."""

    def none() -> asyncio.Runner:
        raise OSError("too many open files")

    monkeypatch.setattr(asyncio, "Runner", none)
    with pytest.raises(IssuerError, match="too many open files"):
        EventLoopThread("beside", _open())


def test_loop_thread_whose_context_cannot_be_opened_raises_the_cause() -> None:
    """A client that cannot be opened is an IssuerError, and does not stop the server."""
    with pytest.raises(IssuerError, match="too many open files"):
        EventLoopThread("beside", _Lacking())


def test_loop_thread_runs_work_until_it_is_closed() -> None:
    """Work after the close is refused."""

    async def asked() -> int:
        return 7

    beside = EventLoopThread("beside", _open())
    assert beside.do(asked) == 7
    beside.close()
    with pytest.raises(IssuerError, match="the server is stopping"):
        beside.do(asked)
