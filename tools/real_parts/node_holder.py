"""Holder of a node's namespaces and control groups, until its parent ends for whatever reason.

Run this file with `python -I -S node_holder.py GROUP` and a pipe as standard input. The program prints one
line: the pid of a process inside the namespaces. At the end of the pipe all processes inside are killed and
the groups are removed. Mounts in memory cover the folders for output of a node's programs, so none of the
files reaches a disk.
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
"""Maximum seconds until killed processes have left their control groups."""
_WEIGHTS: Final = {"cpu.shares": 4 * 1024, "cpu.weight": 4 * 100}
"""CPU weight of all Pods of a node, in version 1 and 2: as much as four processes of this machine together.

With the default, all Pods together have the weight of one process. Beside a few busy processes the Pods then
get almost no time: probes run into their time limits, and Jobs do not end. With the weight of ten processes,
the kubelet and the API server get too little.
"""
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
    """Yield the node's group in each hierarchy: one in version 2, one per controller in version 1."""
    tops = [CGROUPS] if (CGROUPS / "cgroup.procs").exists() else sorted(CGROUPS.iterdir())
    for top in tops:
        if (top / "cgroup.procs").exists() and not top.is_symlink():
            yield top / name


def _make(group: Path) -> None:
    group.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):
        if group.parent.name == "cpuset":  # version 1 accepts no process while these are empty
            (group / name).write_text((group.parent / name).read_text())
    for name, weight in _WEIGHTS.items():
        if (group / name).exists():
            (group / name).write_text(str(weight))


def _remove(group: Path) -> bool:
    """Remove a control group with all subgroups; return whether the group is gone."""
    for item in (*sorted((path for path in group.rglob("*/")), reverse=True), group):
        with contextlib.suppress(OSError):  # the group still has processes, or is gone
            item.rmdir()
    return not group.exists()


def hold(name: str) -> str:
    """Create the namespaces, print the pid inside, and remove all at the end.

    Return the remaining groups.
    """
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
    return ", ".join(str(path) for path in made if path.exists())


def be_first() -> None:
    """Run as the first process of the PID namespace until the pipe ends.

    The other processes end with this one.
    """
    # The kernel then reaps orphans, because this process waits for none.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print(flush=True)
    sys.stdin.buffer.read()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        be_first()
        sys.exit()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the end of the pipe ends this process
    sys.exit(hold(sys.argv[1]) or None)
