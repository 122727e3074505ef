"""Notices that files have changed: by events, and by looking now and then where there are none."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import Final

from watchfiles import awatch

LOOK_SECONDS: Final = 10.0
QUIET_SECONDS: Final = 0.1


async def changes(
    directories: Iterable[Path],
    digest: Callable[[], str],
    look_seconds: float = LOOK_SECONDS,
    quiet_seconds: float = QUIET_SECONDS,
) -> AsyncGenerator[str, None]:
    """Yield the digest of the files whenever it is another than before; first, as it is at the beginning.

    A burst of events is one look, `quiet_seconds` after the last. Every `look_seconds` there is one without
    an event: file systems exist that send none, and links may lead to where nobody watches.
    """
    known = await asyncio.to_thread(digest)
    yield known
    events = awatch(
        *directories,
        step=int(quiet_seconds * 1000),
        rust_timeout=int(look_seconds * 1000),
        yield_on_timeout=True,
        recursive=False,
    )
    async for _ in events:
        found = await asyncio.to_thread(digest)
        if found != known:
            known = found
            yield found
