"""Requests to a gateway, again and again in four ways, as a program in the node's network.

    python -m tests.kubernetes.gateway.edge_load ADDRESS HOST FILE

The ways are HTTP and HTTPS, each on a connection for every request and on one that is kept. FILE has the
number of answers and the failures as JSON, and is replaced after each request. The program ends when its
input ends. It accepts any certificate, because a test replaces it.
"""

import asyncio
import itertools
import json
import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Final

import aiohttp

from tests.tools.deadline import wait_until

_PAUSE: Final = 0.02
_SECONDS: Final = 10.0


@dataclass
class Counts:
    """Numbers of answers with status 200, and the failures in words."""

    answered: int = 0
    failed: list[str] = field(default_factory=list)

    def save(self, file: Path) -> None:
        """Replace a file by these numbers."""
        new = file.with_suffix(".new")
        new.write_text(json.dumps([self.answered, self.failed]))
        new.replace(file)


@dataclass(frozen=True)
class EdgeLoad:
    """A running program, and its file."""

    file: Path

    def counts(self) -> Counts:
        """Return the numbers until now."""
        return Counts(*json.loads(self.file.read_text())) if self.file.exists() else Counts()

    def until_more(self, number: int) -> None:
        """Wait for a number of further answers or failures."""

        def total() -> int:
            counts = self.counts()
            return counts.answered + len(counts.failed)

        before = total()
        wait_until(lambda: total() >= before + number, 60)


@contextmanager
def edge_load(enter: tuple[str, ...], address: str, host: str, file: Path) -> Iterator[EdgeLoad]:
    """Start the program in another network, and end it with the block."""
    command = (*enter, sys.executable, "-m", __name__, address, host, str(file))
    with Popen(command, stdin=PIPE, cwd=Path(__file__).parents[3], env=dict(os.environ)) as process:
        assert process.stdin is not None
        try:
            load = EdgeLoad(file)
            load.until_more(20)
            yield load
        finally:
            process.stdin.close()


async def _requests(url: str, host: str, counts: Counts, file: Path, *, keep: bool) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(force_close=not keep, ssl=context)
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        for number in itertools.count():
            try:
                async with session.get(url, headers={"Host": host}, server_hostname=host) as answer:
                    await answer.read()
                    if answer.status == 200:
                        counts.answered += 1
                    else:
                        counts.failed.append(f"{url} {keep=} {number}: {answer.status}")
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                counts.failed.append(f"{url} {keep=} {number}: {error!r}")
            counts.save(file)
            await asyncio.sleep(_PAUSE)


async def _main(address: str, host: str, file: Path) -> None:
    counts = Counts()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_requests(f"{scheme}://{address}/", host, counts, file, keep=keep))
            for scheme in ("http", "https")
            for keep in (False, True)
        ]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
