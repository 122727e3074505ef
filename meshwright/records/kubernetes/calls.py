"""Time limits of calls to the API server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from meshwright.kube.api import Api
from meshwright.records.contract import StoreUnavailableError


@contextlib.asynccontextmanager
async def answered(api: Api, seconds: float) -> AsyncIterator[None]:
    """Raise StoreUnavailableError if the block takes longer than the time limit."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise StoreUnavailableError(
            f"the API server at {api.server} did not answer within {seconds:g} s"
        ) from error
