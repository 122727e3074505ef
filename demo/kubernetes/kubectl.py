"""kubectl, as a user has it, on one kubeconfig."""

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
"""How long anything that is waited for may take: a machine may be slow, and Pods begin side by side."""
_SHORTEST, _LONGEST = 0.2, 0.5
"""Seconds between two looks, which grow by a tenth of the wait: each look is a process."""


def find() -> str:
    """Return kubectl: MESHWRIGHT_KUBECTL, the clone's own, or PATH's."""
    local = Path(__file__).parents[2] / ".kubectl" / "bin" / "kubectl"
    wanted = os.environ.get("MESHWRIGHT_KUBECTL")
    found = shutil.which(wanted or str(local)) or (None if wanted else shutil.which("kubectl"))
    if found is None:
        raise DemoError(
            "there is no kubectl: `make kubectl` makes .kubectl/bin/kubectl, or MESHWRIGHT_KUBECTL"
        )
    return str(Path(found).absolute())


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig; `enter` stands before it where the API is in another network."""

    program: str
    kubeconfig: Path
    cache: Path
    enter: tuple[str, ...] = ()

    def command(self, *words: str) -> list[str]:
        """Return the whole command."""
        at = (f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}")
        return [*self.enter, self.program, *at, *words]

    async def __call__(self, *words: str, given: str = "", deadline: float = SECONDS) -> str:
        """Run it to its end, and return what it prints; DemoError with its words if it fails."""
        return await run(self.command(*words), given=given, deadline=deadline)

    async def apply(self, documents: Iterable[Mapping[str, object]]) -> str:
        """Apply objects, server-side: what is there already is made to be as told."""
        given = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        return await self("apply", "--server-side", "--force-conflicts", "-f", "-", given=given)

    async def get(self, *words: str) -> dict[str, Any]:
        """Return an object, or a list of them."""
        return dict(json.loads(await self("get", *words, "-o", "json")))

    async def until(
        self, holds: Callable[[dict[str, Any]], object], *words: str, seconds: float = SECONDS
    ) -> dict[str, Any]:
        """Get until what comes is as wanted; return it. What is not there yet is waited for as well."""
        began = time.monotonic()
        while True:
            try:
                found = await self.get(*words)
                if holds(found):
                    return found
                said = json.dumps(found.get("status", found))[-1000:]
            except DemoError as error:
                said = str(error)
            waited = time.monotonic() - began
            if waited > seconds:
                raise DemoError(f"waited {seconds:.0f} s in vain for `kubectl get {' '.join(words)}`: {said}")
            await asyncio.sleep(min(max(waited / 10, _SHORTEST), _LONGEST))
