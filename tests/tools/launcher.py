"""A replacement of the file `meshwright` that forks commands from one process with all imports done.

Starting Python and importing the modules of a command takes a second of CPU time, and the tests of machines
and Pods run hundreds of commands. The file that `installed` writes is started like any program: by
nsenter(1), by setpriv(1), by a shell. It requests a fork from the process of `Launcher`. The fork gets its
streams, folder, variables, user and namespaces, and the file ends with the status of the fork. Signals are
forwarded.

Long-running programs (`agent`, `cni`, `serve`) are always the real file. So is every command while no
`Launcher` runs, and every command of a user other than root that has capabilities. A fork has the cgroup of
the tests.
"""

import array
import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from tests.tools.forked_cli import PATH, ROOT, command_ends, forked, preload

_REAL: Final = Path(sys.executable).parent / "meshwright"
_MOST: Final = 1 << 20
_NAMESPACES: Final = ("net", "mnt")
_LAUNCHED: Final = """\
#!{python} -ISE
import array, json, os, signal, socket, sys
def real():
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
verb, first = (sys.argv[1:] + ["", ""])[:2]
if verb in ("", "serve", "cni") or (verb == "agent" and (not first or first[0] == "-")):
    real()
capable = int(open("/proc/self/status").read().partition("CapEff:")[2].split()[0], 16)
if os.getuid() and capable:
    real()
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    asking.connect({socket!r})
except OSError:
    real()
spaces = [os.open("/proc/self/ns/" + name, os.O_RDONLY) for name in {spaces}]
files = array.array("i", [0, 1, 2, os.open(".", os.O_PATH), *spaces])
asked = dict(words=sys.argv[1:], variables=dict(os.environ), uid=os.getuid(), gid=os.getgid(),
             groups=os.getgroups(), umask=os.umask(0))
asking.sendmsg([json.dumps(asked).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
child = int(asking.recv(64))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, _: os.kill(child, number))
status = int(asking.recv(64) or -9)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


def installed(folder: Path) -> Path:
    """Write the replacement of `meshwright` into a folder; return its path."""
    text = _LAUNCHED.format(
        python=sys.executable, real=str(_REAL), socket=str(_socket(folder)), spaces=_NAMESPACES
    )
    file = folder / "meshwright"
    file.write_text(text)
    file.chmod(0o755)
    return file


def _socket(folder: Path) -> Path:
    return folder / "launcher.sock"


class Launcher:
    """The forking process for the file in one folder; it ends with the block."""

    def __init__(self, folder: Path) -> None:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with listening:
            listening.bind(str(_socket(folder)))
            _socket(folder).chmod(0o777)
            listening.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listening.fileno())],
                cwd=ROOT,
                env={"PATH": PATH, "PYTHONPATH": str(ROOT), "GRPC_VERBOSITY": "NONE"},
                pass_fds=(listening.fileno(),),
            )
        self._folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _socket(self._folder).unlink()
        with self._process as process:
            process.kill()


def _enter(namespaces: list[int]) -> None:
    """Enter the namespaces of the launching process, if they differ from ours."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name, file in zip(_NAMESPACES, namespaces, strict=True):
        ours = Path(f"/proc/self/ns/{name}").stat().st_ino
        if os.fstat(file).st_ino != ours and libc.setns(file, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)
        os.close(file)


def _become(asked: Mapping[str, Any], files: list[int]) -> None:
    """Give this process the streams, folder, variables and user of the launching process."""
    *streams, folder, net, mounts = files
    _enter([net, mounts])
    os.fchdir(folder)
    os.close(folder)
    os.environ.clear()
    os.environ.update(asked["variables"])
    os.umask(asked["umask"])
    if os.geteuid() == 0:
        os.setgroups(asked["groups"])
        os.setresgid(*[asked["gid"]] * 3)
        os.setresuid(*[asked["uid"]] * 3)
    sys.argv = ["meshwright", *asked["words"]]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


def _received(here: socket.socket) -> tuple[Mapping[str, Any], list[int]]:
    files = array.array("i")
    data, ancillary, _, _ = here.recvmsg(_MOST, socket.CMSG_SPACE(6 * files.itemsize))
    for _, _, sent in ancillary:
        files.frombytes(sent)
    return json.loads(data), list(files)


def _await_launch(listening: socket.socket) -> None:
    """Fork twice for each launch, once to report its status; return in the inner child alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        here, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            asked, files = _received(here)
            child = forked()
            if child == 0:
                here.close()
                _become(asked, files)
                return
            for file in files:
                os.close(file)
            _report(here, child)
        here.close()


def _report(here: socket.socket, child: int) -> None:
    """Send the child's process id, and later its status; kill the child if the launching process ends."""
    with contextlib.suppress(OSError):
        here.send(str(child).encode())
        ended = os.pidfd_open(child)
        if ended not in select.select([here.fileno(), ended], [], [])[0]:
            os.kill(child, signal.SIGKILL)
        here.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    os._exit(0)


if __name__ == "__main__":
    preload()
    gc.freeze()  # what is imported stays shared
    _await_launch(socket.socket(fileno=int(sys.argv[1])))
    command_ends()
