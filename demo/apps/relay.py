"""Relay between standard input and output and a control socket, for `kubectl exec`.

Each line is a JSON object: `{"id", "method", "path", "body"}` for a query, and `{"id", "status", "body"}` for
its answer. Queries are processed concurrently, so answers can have another order.
"""

import asyncio
import json
import sys
from pathlib import Path

import aiohttp


async def serve(socket: Path) -> None:
    """Pass queries from standard input to the control socket, and print the answers, until the input ends."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    # In a thread, because the event loop cannot watch every kind of standard input, for example no file.
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


async def _answer(session: aiohttp.ClientSession, request: dict[str, str]) -> None:
    try:
        url = f"http://app{request['path']}"
        async with session.request(request["method"], url, data=request["body"] or None) as response:
            answer = {"status": response.status, "body": await response.text()}
    except (aiohttp.ClientError, OSError) as error:
        answer = {"status": 503, "body": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
