"""Holds the namespaces and control groups of a node, until whoever started it is gone, however that came.

Run as a file of its own: `python -I -S holding.py GROUP`, with a pipe at standard input. It says the id of a
process whose network and mounts they are, a line; at the pipe's end all that runs in them is killed, and the
groups are removed. What it mounts over is where programs of a node write: none of it comes to a disk.
"""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
_PATIENCE: Final = 30.0
"""Seconds that what was killed may take to leave its control groups."""
_WITHIN: Final = """
set -e
mount -t tmpfs -o mode=0755 run /run
for each in /etc /opt /var/lib /var/log; do
    mkdir -p /run/over$each/upper /run/over$each/work
    mount -t overlay -o lowerdir=$each,upperdir=/run/over$each/upper,workdir=/run/over$each/work over $each
done
mount --make-rshared / # as on a machine that systemd has begun: Pods may see what is mounted later
echo 1 >/proc/sys/net/ipv4/ip_forward
exec "$@"
"""


def groups(name: str) -> Iterator[Path]:
    """Yield the node's group in each hierarchy: one in version 2, one each in version 1."""
    tops = [CGROUPS] if (CGROUPS / "cgroup.procs").exists() else sorted(CGROUPS.iterdir())
    for top in tops:
        if (top / "cgroup.procs").exists() and not top.is_symlink():
            yield top / name


def _make(group: Path) -> None:
    group.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):
        if group.parent.name == "cpuset":  # version 1 leaves them empty, and then takes no process
            (group / name).write_text((group.parent / name).read_text())


def _remove(group: Path) -> bool:
    """Remove a group and those in it; say whether it is gone."""
    for each in (*sorted((path for path in group.rglob("*/")), reverse=True), group):
        with contextlib.suppress(OSError):  # somebody is in it still, or it is gone
            each.rmdir()
    return not group.exists()


def hold(name: str) -> str:
    """Make them, say whose they are, and remove them in the end; return what could not be removed."""
    made = list(groups(name))
    try:
        for group in made:
            _make(group)
        apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command = [*apart, "sh", "-c", _WITHIN, "sh", sys.executable, "-I", "-S", __file__]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as started:
            assert started.stdout is not None  # noqa: S101 - it is a pipe
            if started.stdout.readline():
                print(started.pid, flush=True)
    finally:
        deadline = time.monotonic() + _PATIENCE
        while [group for group in made if not _remove(group)] and time.monotonic() < deadline:
            time.sleep(0.02)
    return ", ".join(str(each) for each in made if each.exists())


def be_first() -> None:
    """Be the first process of its namespace, with which all others end: until the pipe does."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what is left to it
    print(flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        be_first()
        sys.exit()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the pipe's end is what ends it
    sys.exit(hold(sys.argv[1]) or None)
