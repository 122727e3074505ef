"""A loop beside that cannot be had is said to whoever wants it: nobody waits for it."""

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
    """What cannot be opened."""

    async def __aenter__(self) -> None:
        raise OSError("too many open files")

    async def __aexit__(self, *how: object) -> None:
        """Never come to."""


def test_without_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no file descriptor is left."""

    def none() -> asyncio.Runner:
        raise OSError("too many open files")

    monkeypatch.setattr(asyncio, "Runner", none)
    with pytest.raises(IssuerError, match="too many open files"):
        EventLoopThread("beside", _open())


def test_without_its_context() -> None:
    """A client that cannot be opened is a reason as well, and no stop of the server."""
    with pytest.raises(IssuerError, match="too many open files"):
        EventLoopThread("beside", _Lacking())


def test_with_both_it_does_what_it_is_given() -> None:
    """And nothing more once it is closed."""

    async def asked() -> int:
        return 7

    beside = EventLoopThread("beside", _open())
    assert beside.do(asked) == 7
    beside.close()
    with pytest.raises(IssuerError, match="the server is stopping"):
        beside.do(asked)
