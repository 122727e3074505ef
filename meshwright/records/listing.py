"""One list of the records within a prefix, without following them."""

import asyncio

from meshwright.records.contract import Changes, Record, RecordStore
from meshwright.records.key import Key


async def listed_once(store: RecordStore, prefix: Key) -> tuple[Record, ...]:
    """Return all records within a prefix. Waits for ever while the store is away: use a time limit."""
    first: asyncio.Future[tuple[Record, ...]] = asyncio.get_running_loop().create_future()

    def receive(changes: Changes) -> None:
        if not first.done():
            first.set_result(changes.records)

    following = asyncio.ensure_future(store.follow(prefix, receive))
    try:
        await asyncio.wait((following, first), return_when=asyncio.FIRST_COMPLETED)
        if not first.done():
            await following  # raises the error of the store
        return await first
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
