"""Namespaces of a node: network, mounts and processes, which end with their creator.

A node exists only in its namespaces and leaves nothing behind: the kernel kills the processes and removes
mounts and networks, even if the creator is killed.
"""

import contextlib
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from meshwright.agent.envoy import die_with_parent
from tools.netns import within
from tools.real_parts import node_holder as holding
from tools.real_parts.building import PartError

_PYTHON: Final = (sys.executable, "-I", "-S")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Namespaces of one node: a process inside them, and the name of the control group in every hierarchy."""

    pid: int
    group: str

    @property
    def network(self) -> tuple[str, ...]:
        """Return the prefix for a command in the network.

        The command replaces the prefix in the same process.
        """
        return ("nsenter", f"--net={self.network_file}", "--")

    @property
    def network_file(self) -> Path:
        """Return the file for entering the node's network namespace (setns(2))."""
        return Path(self._of("net"))

    @property
    def whole(self) -> tuple[str, ...]:
        """Return the prefix for a command in all namespaces of the node; the command dies with its parent."""
        entered = (
            f"--net={self._of('net')}",
            f"--mount={self._of('mnt')}",
            f"--pid={self._of('pid_for_children')}",
        )
        # The parent is outside the PID namespace, so its pid is seen as 0 inside while it lives.
        return ("nsenter", *entered, "--", *_PYTHON, die_with_parent.__file__, "0")

    def seen(self, path: str) -> Path:
        """Return the path, outside of the namespaces, of a file inside of them."""
        return Path(f"/proc/{self.pid}/root{path}")

    def do(self, work: Callable[[], _Result]) -> _Result:
        """Call a function in the node's network namespace, where its sockets are created."""
        return within(self.network_file, work)

    def run(self, *words: str, stdin: str = "") -> str:
        """Run a command in all namespaces of the node; return the output. Raises PartError for a failure."""
        done = subprocess.run([*self.whole, *words], input=stdin, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PartError(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def groups(self) -> Sequence[Path]:
        """Return the control group of the node in each hierarchy."""
        return tuple(holding.groups(self.group))

    def _of(self, name: str) -> str:
        return f"/proc/{self.pid}/ns/{name}"


@contextlib.contextmanager
def namespaces() -> Iterator[Namespaces]:
    """Create a node's namespaces and control groups, which end with the block or with this process."""
    group = f"meshwright-parts-{secrets.token_hex(4)}"
    words = [*_PYTHON, holding.__file__, group]
    # A new session, because Ctrl-C must only reach this process, which stops the node in order.
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as holder:
        assert holder.stdin and holder.stdout and holder.stderr  # noqa: S101, PT018 - they are pipes
        try:
            if not (text := holder.stdout.readline()):
                raise PartError(
                    f"the namespaces of a node cannot be created here: {holder.stderr.read().strip()}"
                )
            yield Namespaces(int(text), group)
        finally:
            holder.stdin.close()
            left = holder.stderr.read().strip()
            holder.wait()
    if holder.returncode != 0:
        raise PartError(f"a node left control groups behind: {left}")
