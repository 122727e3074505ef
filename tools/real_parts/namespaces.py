"""The namespaces of a node: a network, mounts and processes apart, which end with whoever made them.

Nothing of a node is anywhere else, so that nothing of it can be left: what runs there is killed by the
kernel, and its mounts and networks are gone with it, also where the maker itself was killed.
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
    """Those of one node: a process that has them, and the name of its control group in every hierarchy."""

    pid: int
    group: str

    @property
    def network(self) -> tuple[str, ...]:
        """Return what stands before a command that runs in the network; it is no other process then."""
        return ("nsenter", f"--net={self.network_file}", "--")

    @property
    def network_file(self) -> Path:
        """Return the file by which a process enters the network (setns(2))."""
        return Path(self._of("net"))

    @property
    def whole(self) -> tuple[str, ...]:
        """Return what stands before a command that runs in all of them, and dies with what was started."""
        entered = (
            f"--net={self._of('net')}",
            f"--mount={self._of('mnt')}",
            f"--pid={self._of('pid_for_children')}",
        )
        # From in there the parent is nobody's process: 0, as long as it lives.
        return ("nsenter", *entered, "--", *_PYTHON, die_with_parent.__file__, "0")

    def seen(self, path: str) -> Path:
        """Return where a file of theirs is seen from out here."""
        return Path(f"/proc/{self.pid}/root{path}")

    def do(self, work: Callable[[], _Result]) -> _Result:
        """Call a function that makes its sockets in the network."""
        return within(self.network_file, work)

    def run(self, *words: str, given: str = "") -> str:
        """Run a command in all of them, to its end; return what it prints, or raise PartError."""
        done = subprocess.run([*self.whole, *words], input=given, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PartError(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def groups(self) -> Sequence[Path]:
        """Return the node's control group in each hierarchy."""
        return tuple(holding.groups(self.group))

    def _of(self, name: str) -> str:
        return f"/proc/{self.pid}/ns/{name}"


@contextlib.contextmanager
def namespaces() -> Iterator[Namespaces]:
    """Make namespaces, and control groups, that end with the block or with this process."""
    group = f"meshwright-parts-{secrets.token_hex(4)}"
    words = [*_PYTHON, holding.__file__, group]
    # Away from our terminal: an interrupt is for us, who end it in our own time.
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
            if not (said := holder.stdout.readline()):
                raise PartError(
                    f"a node cannot have namespaces of its own here: {holder.stderr.read().strip()}"
                )
            yield Namespaces(int(said), group)
        finally:
            holder.stdin.close()
            left = holder.stderr.read().strip()
            holder.wait()
    if holder.returncode != 0:
        raise PartError(f"this is left of a node: {left}")
