"""A gRPC application and its caller as processes, so that they run in their own network namespaces.

`python -m tests.e2e.agent.observation.grpc_program serve ADDRESS` serves until it is ended, and prints
`ready` first; `... call ADDRESS:PORT METHOD...` prints the status of each call.
"""

import asyncio
import sys
from contextlib import AsyncExitStack

import grpc
import grpc.aio

from tests.e2e.policy import applications


async def serve(address: str) -> None:
    """Answer calls of `test.Echo`."""
    async with AsyncExitStack() as ends:
        await applications.start_grpc("shop", address, ends)
        _say("ready")
        await asyncio.Event().wait()


async def call(target: str, *methods: str) -> None:
    """Call methods one after the other on one connection."""
    async with grpc.aio.insecure_channel(target) as channel:
        for method in methods:
            calling = channel.unary_unary(f"/test.Echo/{method}")(b"hello", timeout=15)
            _say((await calling.code()).name)


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", address]:
            asyncio.run(serve(address))
        case ["call", target, *methods]:
            asyncio.run(call(target, *methods))
        case _:
            sys.exit(__doc__)
