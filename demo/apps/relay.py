"""A program's socket, led over standard input and output: what `kubectl exec` has of a container.

A line is a JSON object: a question is `{"id", "method", "path", "body"}`, its answer `{"id", "status",
"body"}`. Questions are answered side by side, in whatever order they are done.
"""

import asyncio
import json
import sys
from pathlib import Path

import aiohttp


async def serve(socket: Path) -> None:
    """Answer until the input ends."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "")

    reading = asyncio.create_task(asyncio.to_thread(read))
    connector = aiohttp.UnixConnector(str(socket))
    timeout = aiohttp.ClientTimeout(total=120)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        asyncio.TaskGroup() as all_,
    ):
        while line := await lines.get():
            all_.create_task(_answer(session, json.loads(line)))
    await reading


async def _answer(session: aiohttp.ClientSession, asked: dict[str, str]) -> None:
    try:
        url = f"http://app{asked['path']}"
        async with session.request(asked["method"], url, data=asked["body"] or None) as response:
            answer = {"status": response.status, "body": await response.text()}
    except (aiohttp.ClientError, OSError) as error:
        answer = {"status": 503, "body": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": asked["id"], **answer}), flush=True)
