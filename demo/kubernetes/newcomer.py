"""First steps of a new user: from an empty cluster to a request that is denied, explained and allowed.

The printed lines are the executed lines: a shell runs them, with `kubectl` and `meshwright` in its PATH.
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
    "kubectl -n meshwright-system exec svc/meshwright -- "
    "meshwright explain --from shop/buyer --to shop/seller:14001 GET /buy-a-book/new"
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command with its expected output and exit status.

    With `again` the command is repeated until the output is as expected, because applied objects take time.
    """

    line: str
    expected: str = ""
    again: bool = False
    status: int = 0


def steps(images: Images) -> tuple[Step, ...]:
    """Return the first steps in docs/start/kubernetes.md as commands, with the images to install."""
    return (
        Step(f"meshwright install --print --set {images.values()} | kubectl apply -f -"),
        Step("kubectl -n meshwright-system rollout status deployment/meshwright", "roll"),
        Step("kubectl apply -f shop.yaml"),
        Step(
            "kubectl -n shop wait --for=condition=Available --timeout=390s deployment --all", "condition met"
        ),
        Step(_CALL, "403", again=True),
        Step(_EXPLAIN, "refused", status=1),
        Step("kubectl apply -f allow.yaml", "configured"),
        Step(_CALL, "200", again=True),
    )


async def walk(plane: Plane, print_line: Callable[[str], None]) -> Verdict:
    """Run and print the commands of the first steps, delete the shop, and return a verdict about them."""
    shell = _Shell(plane)
    began, result = time.monotonic(), True
    wanted = steps(plane.images)
    for step in wanted:
        print_line(f"$ {step.line}")
        status, text = await shell.until(step)
        print_line("\n".join(f"  {line}" for line in _shortened(text)))
        result = result and step.expected in text and status == step.status
    took = time.monotonic() - began
    await plane.kubectl("delete", "namespace", "shop", "--wait=false")
    observed = f"{len(wanted)} commands, {took:.0f} s" if result else "a command printed something else"
    print_line(f"time from an empty cluster until a request was denied, explained and allowed: {observed}")
    return Verdict(
        "newcomer",
        "first steps on an empty cluster",
        "a request is denied, explained, allowed",
        observed,
        result,
    )


class _Shell:
    """Shell of a new user, with kubectl, `meshwright`, and the folder of the shop's manifests."""

    def __init__(self, plane: Plane) -> None:
        programs = plane.folder / "bin"
        programs.mkdir()
        # A script, because the shell's `kubectl` must use the kubeconfig of the demo and no other.
        kubectl = programs / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {shlex.join(plane.kubectl.command())} "$@"\n', "utf-8")
        kubectl.chmod(0o755)
        path = f"{programs}:{COMMAND.parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}

    async def until(self, step: Step) -> tuple[int, str]:
        """Run a step and return status and output; repeat a step with `again` until both are as expected."""
        limit = time.monotonic() + SECONDS
        while True:
            status, text = await self._run(step.line)
            done = step.expected in text and status == step.status
            if done or not step.again or time.monotonic() > limit:
                return status, text

    async def _run(self, line: str) -> tuple[int, str]:
        argv = bound_to_parent(["sh", "-c", line])
        command = Command(argv, environment=self._environment, folder=MANIFESTS, merged=True)
        try:
            ended = await run(command, SECONDS)
        except TimeoutError as error:
            raise DemoError(f"did not end within {SECONDS:.0f} s: {line}") from error
        return ended.status, ended.output.decode(errors="replace").strip()


def _shortened(output: str, most: int = 12) -> list[str]:
    lines = output.splitlines()
    return (
        lines
        if len(lines) <= most
        else [*lines[: most // 2], f"... {len(lines)} lines", *lines[-most // 2 :]]
    )
