"""Programs in Pods: one `kubectl exec` stream each, opened again if the stream or its Pod ends."""

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
"""Program of the image that connects standard input and output to a control socket."""
_LINE_LIMIT: Final = 1 << 22


class BrokenStreamError(OSError):
    """Error for a stream that ended before the answer; the query may or may not have been processed."""


@dataclass(frozen=True, slots=True)
class ProgramSelector:
    """Location of a demo program: namespace, labels of its Pods, and container."""

    namespace: str
    labels: str
    container: str


async def pod_of(kubectl: Kubectl, selected: ProgramSelector) -> dict[str, Any]:
    """Return the newest ready Pod of a program that is not being deleted; wait until there is one."""
    words = ("pods", "-n", selected.namespace, "-l", selected.labels)
    result = await kubectl.until(lambda pods: any(map(is_ready, pods["items"])), *words)
    ready = filter(is_ready, result["items"])
    return max(ready, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a Pod is ready and not being deleted."""
    conditions = {
        condition["type"]: condition["status"] for condition in pod.get("status", {}).get("conditions", ())
    }
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


class Program:
    """Transport of queries to the control socket of a demo program in a Pod."""

    def __init__(self, kubectl: Kubectl, selected: ProgramSelector) -> None:
        self.selected = selected
        self._kubectl = kubectl
        self._opening = asyncio.Lock()
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)

    async def __call__(self, method: str, path: str, body: str | None = None) -> str:
        """Send a query and return its answer.

        Raise OSError if the stream breaks, or if the program answers an error.
        """
        # Concurrent queries must share one stream, so only one of them opens it.
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
                result = await answer
        finally:
            self._waiting.pop(number, None)
        if result["status"] != 200:
            raise OSError(f"{self.selected.container} answers {result['status']}: {result['body']}")
        return str(result["body"])

    async def close(self) -> None:
        """Close the stream of `kubectl exec` to the Pod."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading
        self._process = self._reading = None

    async def _open(self) -> None:
        """Open a stream of `kubectl exec` to a ready Pod of the program."""
        await self.close()
        name = (await pod_of(self._kubectl, self.selected))["metadata"]["name"]
        at = ("exec", "-i", name, "-n", self.selected.namespace, "-c", self.selected.container, "--", RELAY)
        self._process = await asyncio.create_subprocess_exec(
            *bound_to_parent(self._kubectl.command(*at)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            # Ctrl-C must not reach kubectl, because the streams are still needed for the cleanup.
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
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(BrokenStreamError(f"the stream to {self.selected.container} has ended"))


async def insist(program: Program, method: str, path: str, body: str | None = None) -> str:
    """Repeat an idempotent query up to 30 times, once a second, until it is answered.

    Then raise DemoError.
    """
    for _ in range(30):
        try:
            return await program(method, path, body)
        except OSError:
            await asyncio.sleep(1)
    raise DemoError(f"{program.selected.container} in {program.selected.namespace} does not answer")
