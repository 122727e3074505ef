"""Client of a cluster: runs kubectl as a user does, with one kubeconfig."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from demo.supervisor import DemoError, run

SECONDS: Final = 400.0
"""Maximum seconds of any wait; long, because many Pods start at the same time, maybe on a slow machine."""
_SHORTEST, _LONGEST = 0.2, 0.5
"""Bounds of the pause between two checks, in seconds: a tenth of the wait so far. Each check is a process."""


def find() -> str:
    """Return kubectl's path: MESHWRIGHT_KUBECTL, or `.kubectl/bin/kubectl` of the clone, or from PATH."""
    local = Path(__file__).parents[2] / ".kubectl" / "bin" / "kubectl"
    wanted = os.environ.get("MESHWRIGHT_KUBECTL")
    result = shutil.which(wanted or str(local)) or (None if wanted else shutil.which("kubectl"))
    if result is None:
        raise DemoError("kubectl was not found: run `make kubectl`, or set MESHWRIGHT_KUBECTL")
    return str(Path(result).absolute())


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig; `enter` is a prefix of the command if the API is in another network."""

    program: str
    kubeconfig: Path
    cache: Path
    enter: tuple[str, ...] = ()

    def command(self, *words: str) -> list[str]:
        """Return the complete kubectl command line for these arguments."""
        at = (f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}")
        return [*self.enter, self.program, *at, *words]

    async def __call__(self, *words: str, stdin: str = "", deadline: float = SECONDS) -> str:
        """Run kubectl, and return its output; raise DemoError with the error output if it fails."""
        return await run(self.command(*words), stdin=stdin, deadline=deadline)

    async def apply(self, documents: Iterable[Mapping[str, object]]) -> str:
        """Apply objects on the server side, and take fields over from other field managers."""
        given = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        return await self("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=given)

    async def get(self, *words: str) -> dict[str, Any]:
        """Return an object or a list of objects, as printed by `kubectl get`."""
        return dict(json.loads(await self("get", *words, "-o", "json")))

    async def until(
        self, holds: Callable[[dict[str, Any]], object], *words: str, seconds: float = SECONDS
    ) -> dict[str, Any]:
        """Repeat `kubectl get` until `holds` accepts the result, and return it.

        Objects may still be missing.
        """
        began = time.monotonic()
        while True:
            try:
                result = await self.get(*words)
                if holds(result):
                    return result
                text = json.dumps(result.get("status", result))[-1000:]
            except DemoError as error:
                text = str(error)
            waited = time.monotonic() - began
            if waited > seconds:
                raise DemoError(
                    f"`kubectl get {' '.join(words)}` is not as expected after {seconds:.0f} s: {text}"
                )
            await asyncio.sleep(min(max(waited / 10, _SHORTEST), _LONGEST))
