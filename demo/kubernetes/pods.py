"""Programs in Pods, asked by `kubectl exec`: one stream each, opened anew when it breaks or its Pod goes."""

import asyncio
import contextlib
import itertools
import json
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass
from typing import Any, Final

from demo.kubernetes.kubectl import SECONDS, Kubectl
from demo.supervisor import DemoError, bound_to_parent

RELAY: Final = "/relay"
"""The program of the image that leads a program's socket to standard input and output."""
_LINE_LIMIT: Final = 1 << 22


class BrokenStreamError(OSError):
    """The stream into a Pod has ended; whether what was asked was done nobody knows."""


@dataclass(frozen=True, slots=True)
class ProgramSelector:
    """A program: its namespace, its Pods' labels, and its container."""

    namespace: str
    labels: str
    container: str


async def pod_of(kubectl: Kubectl, selected: ProgramSelector) -> dict[str, Any]:
    """Wait for a Pod that is ready and stays; return the newest."""
    words = ("pods", "-n", selected.namespace, "-l", selected.labels)
    found = await kubectl.until(lambda pods: any(map(is_ready, pods["items"])), *words)
    ready = filter(is_ready, found["items"])
    return max(ready, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


def is_ready(pod: dict[str, Any]) -> bool:
    """Say whether a Pod is ready, and not about to go."""
    said = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", ())}
    return said.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


class Program:
    """Leads questions to the socket of a program in a Pod."""

    def __init__(self, kubectl: Kubectl, selected: ProgramSelector) -> None:
        self.selected = selected
        self._kubectl = kubectl
        self._opening = asyncio.Lock()
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)

    async def __call__(self, method: str, path: str, body: str | None = None) -> str:
        """Ask; raise OSError if the stream breaks, or the program does not answer."""
        async with self._opening:
            if self._process is None or self._reading is None or self._reading.done():
                await self._open()
        process = self._process
        assert process is not None and process.stdin is not None  # noqa: S101, PT018 - it is a pipe
        number = str(next(self._numbers))
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        try:
            asked = {"id": number, "method": method, "path": path, "body": body or ""}
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            async with asyncio.timeout(SECONDS):
                await process.stdin.drain()
                found = await answer
        finally:
            self._waiting.pop(number, None)
        if found["status"] != 200:
            raise OSError(f"{self.selected.container} answers {found['status']}: {found['body']}")
        return str(found["body"])

    async def close(self) -> None:
        """End the stream."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading
        self._process = self._reading = None

    async def _open(self) -> None:
        """Open a stream into a Pod that is ready, and wait until its program answers."""
        await self.close()
        name = (await pod_of(self._kubectl, self.selected))["metadata"]["name"]
        at = ("exec", "-i", name, "-n", self.selected.namespace, "-c", self.selected.container, "--", RELAY)
        self._process = await asyncio.create_subprocess_exec(
            *bound_to_parent(self._kubectl.command(*at)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
            limit=_LINE_LIMIT,
        )
        self._reading = asyncio.create_task(self._read(self._process), name=f"answers of {name}")

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        while line := await process.stdout.readline():
            answer = json.loads(line)
            if (waiting := self._waiting.get(answer["id"])) is not None and not waiting.done():
                waiting.set_result(answer)
        for each in self._waiting.values():
            if not each.done():
                each.set_exception(BrokenStreamError(f"the stream to {self.selected.container} has ended"))


async def insist(program: Program, method: str, path: str, body: str | None = None) -> str:
    """Ask what may be asked twice, until it is answered."""
    for _ in range(30):
        try:
            return await program(method, path, body)
        except OSError:
            await asyncio.sleep(1)
    raise DemoError(f"{program.selected.container} in {program.selected.namespace} does not answer")
