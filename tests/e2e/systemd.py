"""A separate systemd, booted in its own namespaces, isolated from the machine's."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.tools.deadline import HANG_SECONDS, Deadline

SYSTEMD: Final = Path("/lib/systemd/systemd")
UNITS: Final = Path("/run/systemd/system")
PROXY: Final = ("meshwright-proxy", 1500)
SECONDS: Final = 60.0
_NEEDED: Final = ("ip", "mount", "nsenter", "systemctl", "umount", "unshare")

# Its cgroup is the root of its own hierarchy; files below /var/lib, /run and /etc are removed with it.
_BOOT: Final = """
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /opt
mount --bind "$FOLDER/srv" /srv
mkdir /opt/meshwright
mount --bind "$PROGRAMS" /opt/meshwright
mkdir -p /opt/envoy/bin
touch /opt/envoy/bin/envoy
mount --bind "$ENVOY" /opt/envoy/bin/envoy
mkdir /run/etc /run/etc/upper /run/etc/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work /etc
cat "$FOLDER/passwd" > /etc/passwd
mount -t proc proc /proc
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
mkdir -p /run/systemd/system
cp -r "$FOLDER"/units/* /run/systemd/system
export container=other
exec /lib/systemd/systemd --system --unit=tested.target --log-target=null
"""
_APART: Final = "-f -p -m -u -i -n -C --propagation private --kill-child"
_TARGET: Final = "[Unit]\nDefaultDependencies=no\n"


def missing_for_systemd() -> str:
    """Return what is missing for a systemd in namespaces, or an empty string."""
    if os.geteuid() != 0:
        return "it needs root"
    lacking = [name for name in _NEEDED if shutil.which(name) is None]
    if not SYSTEMD.exists():
        lacking.append("systemd")
    if lacking:
        return f"it needs {', '.join(lacking)}"
    return "" if _hierarchy() else "it needs a hierarchy of cgroups (version 2) that can be written"


def _hierarchy() -> Path | None:
    """Return the mount point of cgroups of version 2, alone or beside those of version 1."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, kind = line.split()[4], line.partition(" - ")[2].split()[0]
        if kind == "cgroup2" and os.access(place, os.W_OK) and not os.statvfs(place).f_flag & os.ST_RDONLY:
            return Path(place)
    return None


Condition = Callable[[Mapping[str, str]], object]


class Systemd:
    """A running systemd; its `folder` is outside, and the `srv` in it is /srv inside."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid = pid
        self.folder = folder

    def run(self, *command: str, status: int | None = 0) -> str:
        """Run a command as root in systemd's namespaces; return its output."""
        entered = ("nsenter", "-t", str(self._pid), "-a", *command)
        done = subprocess.run(entered, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
        assert status in (None, done.returncode), (command, done.stdout, done.stderr)
        return done.stdout

    def runs(self) -> bool:
        """Return whether all units of the boot target are started."""
        return self.run("systemctl", "is-active", "tested.target", status=None) == "active\n"

    def shown(self, unit: str) -> Mapping[str, str]:
        """Return the properties of a unit."""
        pairs = (line.partition("=") for line in self.run("systemctl", "show", unit).splitlines())
        return {name: value for name, _, value in pairs}

    def until(self, unit: str, condition: Condition) -> Mapping[str, str]:
        """Wait until the properties of a unit meet the condition; return them."""
        deadline = Deadline(SECONDS)
        while not condition(result := self.shown(unit)):
            assert not deadline.has_passed(), (result, self.log(unit))
            time.sleep(deadline.pause())
        return result

    def log(self, unit: str) -> str:
        """Return a unit's output to standard error."""
        path = self.folder / "srv" / f"{unit}.log"
        return path.read_text() if path.exists() else ""


def dropped_in(unit: str, more: str = "") -> str:
    """Return a drop-in that makes this Python visible to a unit and sets the file of its log."""
    parts = dict.fromkeys((str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix))
    return (
        "[Unit]\nDefaultDependencies=no\n[Service]\n"
        f"ProtectHome=tmpfs\nBindReadOnlyPaths={' '.join(parts)}\n"
        f"StandardOutput=append:/srv/{unit}.log\nStandardError=append:/srv/{unit}.log\n{more}"
    )


@contextmanager
def booted(
    folder: Path, units: Mapping[str, str], envoy: str, *, with_user: bool = True
) -> Iterator[Systemd]:
    """Boot with units by name (drop-ins: `name.d/file`), all stopped; everything ends with the block.

    Inside, this Python's commands are in /opt/meshwright/bin, Envoy is /opt/envoy/bin/envoy, and changes of
    /etc are not seen outside. The proxy's user exists unless `with_user` is false.
    """
    for name, text in {**units, "tested.target": _TARGET}.items():
        path = folder / "units" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "srv").mkdir()
    (folder / "srv").chmod(0o755)
    user, number = PROXY
    own = f"{user}:x:{number}:{number}::/:/usr/sbin/nologin\n"
    (folder / "passwd").write_text(Path("/etc/passwd").read_text() + (own if with_user else ""))
    hierarchy = _hierarchy()
    assert hierarchy is not None
    group = hierarchy / f"meshwright-test-{os.getpid()}"
    group.mkdir()
    outside = subprocess.Popen(
        ["sh", "-c", f"echo $$ > {group}/cgroup.procs && exec unshare {_APART} sh -c '{_BOOT}'"],
        env={"PATH": os.environ["PATH"], "FOLDER": str(folder), "PROGRAMS": sys.prefix, "ENVOY": envoy},
    )
    try:
        yield _begun(outside, folder)
    finally:
        outside.kill()
        outside.wait()
        _remove(group)


def _begun(outside: subprocess.Popen[bytes], folder: Path) -> Systemd:
    """Wait until systemd responds."""
    children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
    limit = time.monotonic() + SECONDS
    while True:
        assert outside.poll() is None
        assert time.monotonic() < limit
        if first := children.read_text().split():
            systemd = Systemd(int(first[0]), folder)
            if Path(f"/proc/{first[0]}/exe").resolve() == SYSTEMD.resolve() and systemd.runs():
                return systemd
        time.sleep(0.05)


def _remove(group: Path) -> None:
    """Remove systemd's cgroups once the processes in them have ended."""
    limit = time.monotonic() + SECONDS
    while group.exists():
        assert time.monotonic() < limit
        for path in sorted(group.rglob("*/"), reverse=True):
            with contextlib.suppress(OSError):
                path.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()
        time.sleep(0.02)
