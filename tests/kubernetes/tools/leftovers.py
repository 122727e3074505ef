"""Search for leftovers of a node on this machine after its end; there must be none."""

from collections.abc import Iterator
from pathlib import Path

from tests.kubernetes.tools.kubectl import SECONDS
from tests.tools.deadline import wait_until
from tools.real_parts import node_holder as holding
from tools.real_parts.node_flags import SOCKET


def until_nothing_is_left(folder: Path, group: str) -> None:
    """Wait until no process, mount, control group or socket of a node exists."""
    left: list[str] = []

    def is_gone() -> bool:
        left[:] = _left(folder, group)
        return not left

    wait_until(is_gone, SECONDS, lambda: left)


def _left(folder: Path, group: str) -> Iterator[str]:
    yield from (str(path) for path in holding.groups(group) if path.exists())
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    yield from (line for line in mounts if str(folder) in line)
    yield from (line for line in _programs() if str(folder) in line or group in line)
    yield from (item for item in (SOCKET,) if Path(item).exists())


def _programs() -> Iterator[str]:
    """Yield the command lines of all processes, also of other namespaces."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
