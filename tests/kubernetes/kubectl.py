"""kubectl as people use it, on one kubeconfig."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Document = dict[str, Any]

SECONDS: Final = 90.0


def program() -> str | None:
    """Return kubectl: MESHWRIGHT_KUBECTL or the clone's own; None where there is none. PATH's may be any."""
    local = Path(__file__).parents[2] / ".kubectl" / "bin" / "kubectl"
    return shutil.which(os.environ.get("MESHWRIGHT_KUBECTL") or str(local))


@dataclass(frozen=True, slots=True)
class Said:
    """How a call of kubectl ended, and what it printed."""

    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig, in a namespace if there is one; its cache is a folder of the tests.

    `enter` stands before it where the API is in another network.
    """

    program: str
    kubeconfig: Path
    cache: Path
    namespace: str = ""
    enter: tuple[str, ...] = ()

    def run(self, *words: str, given: str = "") -> Said:
        """Run it to its end."""
        at = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}"]
        where = [f"--namespace={self.namespace}"] if self.namespace else []
        done = subprocess.run(
            [*self.enter, self.program, *at, *where, *words],
            input=given,
            env={"HOME": str(self.cache), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def __call__(self, *words: str, given: str = "") -> str:
        """Return what it prints; it must not fail."""
        said = self.run(*words, given=given)
        assert said.status == 0, f"kubectl {' '.join(words)}: {said.out}{said.err}"
        return said.out

    def apply(self, *documents: Mapping[str, object], more: tuple[str, ...] = ()) -> str:
        """Apply objects, server-side by default of ours: what is there already is made to be as told."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        words = ("apply", "--server-side", "--force-conflicts", "-f", "-", *more)
        return self(*words, given=json.dumps(listed))

    def status(self, *documents: Mapping[str, object]) -> str:
        """Write the status of objects that are there."""
        return self.apply(*documents, more=("--subresource=status",))

    def get(self, *words: str) -> Document:
        """Return an object, or a list of them."""
        return dict(json.loads(self("get", *words, "-o", "json")))

    def until_pod(self, pod: str, wanted: str = "condition=Ready") -> None:
        """Wait until a Pod is ready, or whatever is wanted; if it never is, say all that is known of it."""
        words = ("wait", f"--for={wanted}", f"pod/{pod}", f"--timeout={int(SECONDS / 2)}s")
        if all(self.run(*words).status != 0 for _ in range(5)):
            logs = self.run("logs", pod, "--all-containers", "--ignore-errors")
            raise AssertionError(f"{self('describe', 'pod', pod)}\n{logs.out}{logs.err}")

    def until(self, holds: Callable[[Document], object], *words: str, seconds: float = SECONDS) -> Document:
        """Get again and again until what comes is there, and as wanted; return it."""
        limit = time.monotonic() + seconds
        while True:
            said = self.run("get", *words, "-o", "json")
            if said.status == 0 and holds(found := dict(json.loads(said.out))):
                return found
            assert time.monotonic() < limit, f"{said.out[-3000:]}{said.err}"
            time.sleep(0.05)
