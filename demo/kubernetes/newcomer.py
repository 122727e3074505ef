"""A newcomer's way, from an empty cluster to a denied request explained, and allowed: the commands as typed.

What is printed is what was run: the lines go to a shell, in which `kubectl` and `meshwright` are found.
"""

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.display.verdicts import Verdict
from demo.kubernetes.kubectl import SECONDS
from demo.kubernetes.plane import Images, Plane
from demo.plane import COMMAND
from demo.supervisor import DemoError, bound_to_parent
from meshwright.processes.command import Command, run

MANIFESTS: Final = Path(__file__).parent / "manifests" / "newcomer"
_CALL: Final = "kubectl -n shop exec deploy/buyer -c buyer -- /call http://seller.shop:14001/buy-a-book/new"
_EXPLAIN: Final = (
    "kubectl -n meshwright-system exec meshwright-0 -- "
    "meshwright explain --from shop/buyer --to shop/seller:14001 GET /buy-a-book/new"
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and what it must print; `again`: until it does, for what was applied is on its way."""

    line: str
    expected: str = ""
    again: bool = False
    status: int = 0


def steps(images: Images) -> tuple[Step, ...]:
    """Return the commands of the walk, which are those of docs/kubernetes.md, with the images to install."""
    return (
        Step(f"meshwright install --print --set {images.values()} | kubectl apply -f -"),
        Step("kubectl -n meshwright-system rollout status statefulset/meshwright", "roll"),
        Step("kubectl apply -f shop.yaml"),
        Step(
            "kubectl -n shop wait --for=condition=Available --timeout=390s deployment --all", "condition met"
        ),
        Step(_CALL, "403", again=True),
        Step(_EXPLAIN, "refused", status=1),
        Step("kubectl apply -f allow.yaml", "configured"),
        Step(_CALL, "200", again=True),
    )


async def walk(plane: Plane, say: Callable[[str], None]) -> Verdict:
    """Go the way, print it, and judge whether everything came as it should; take the shop away again."""
    shell = _Shell(plane)
    began, found = time.monotonic(), True
    wanted = steps(plane.images)
    for step in wanted:
        say(f"$ {step.line}")
        status, said = await shell.until(step)
        say("\n".join(f"  {line}" for line in _shortened(said)))
        found = found and step.expected in said and status == step.status
    took = time.monotonic() - began
    await plane.kubectl("delete", "namespace", "shop", "--wait=false")
    observed = (
        f"{len(wanted)} commands, {took:.0f} s" if found else "something was printed that should not be"
    )
    say(f"from an empty cluster to a denied request explained, and allowed: {observed}")
    return Verdict("newcomer", "a denied request explained", "and allowed then", observed, found)


class _Shell:
    """A newcomer's shell: his kubectl, meshwright, and the folder of his manifests."""

    def __init__(self, plane: Plane) -> None:
        programs = plane.folder / "bin"
        programs.mkdir()
        kubectl = programs / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {shlex.join(plane.kubectl.command())} "$@"\n', "utf-8")
        kubectl.chmod(0o755)
        path = f"{programs}:{COMMAND.parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}

    async def until(self, step: Step) -> tuple[int, str]:
        """Run a step; where it says so, until it prints what it should, or too long."""
        limit = time.monotonic() + SECONDS
        while True:
            status, said = await self._run(step.line)
            done = step.expected in said and status == step.status
            if done or not step.again or time.monotonic() > limit:
                return status, said

    async def _run(self, line: str) -> tuple[int, str]:
        argv = bound_to_parent(["sh", "-c", line])
        command = Command(argv, environment=self._environment, folder=MANIFESTS, merged=True)
        try:
            ended = await run(command, SECONDS)
        except TimeoutError as error:
            raise DemoError(f"no end after {SECONDS:.0f} s: {line}") from error
        return ended.status, ended.output.decode(errors="replace").strip()


def _shortened(said: str, most: int = 12) -> list[str]:
    lines = said.splitlines()
    return (
        lines
        if len(lines) <= most
        else [*lines[: most // 2], f"... {len(lines)} lines", *lines[-most // 2 :]]
    )
