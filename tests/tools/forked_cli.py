"""The command line, each command in a forked process that does not have to import anything first.

`Typed` starts one Python process with this module; it has imported the modules of commands and forks for each
command. Output goes to files, so that no terminal is involved. The status of a command is reported on a
separate pipe, so that many may run at once.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO, Final, Self

ROOT: Final = Path(__file__).parents[2]
PATH: Final = "/usr/bin:/bin"
_MOST: Final = 65536
_ANY_NAMESPACE: Final = 0


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the arguments of `meshwright`, a folder, and variables besides PATH."""

    folder: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """The status and output of a completed command."""

    returncode: int
    stdout: str
    stderr: str


class Running:
    """A running command, with the methods of `subprocess.Popen` that tests need."""

    def __init__(self, said: FileIO) -> None:
        self._said = said
        self.pid = int(said.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while the command runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; raise subprocess.TimeoutExpired after the timeout."""
        number = self._ended(timeout)
        if number is None:
            raise subprocess.TimeoutExpired("meshwright", timeout or 0)
        return number

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and _is_readable(self._said, timeout):
            self.returncode = int(self._said.readline())
            self._said.close()
        return self.returncode


def _is_readable(file: FileIO, seconds: float | None) -> bool:
    """Return whether a file can be read without waiting, after at most these seconds."""
    # Unlike `select`, it takes any number of a descriptor: a long run has more than 1024 open ones.
    poll = select.poll()
    poll.register(file, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


Process = Running | subprocess.Popen[str]


class Commands(ABC):
    """A way to run commands.

    `enter` is a command prefix for another file system or network.
    """

    enter: tuple[str, ...] = ()

    @abstractmethod
    def start(self, command: Command, stdout: IO[str], stderr: IO[str]) -> Process:
        """Start a command."""

    def run(self, command: Command, timeout: float | None = None) -> Done:
        """Run a command to its end."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            status = self.start(command, out, err).wait(timeout)
            for text_io_wrapper in (out, err):
                text_io_wrapper.seek(0)
            return Done(status, out.read(), err.read())


@dataclass(frozen=True)
class Executed(Commands):
    """Commands that are started as new processes, like a shell does."""

    enter: tuple[str, ...] = ()

    def start(self, command: Command, stdout: IO[str], stderr: IO[str]) -> Process:
        """Start a command."""
        words = (
            *self.enter,
            sys.executable,
            "-c",
            "from meshwright.cli.main import main; main()",
            *command.arguments,
        )
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **command.environment}
        return subprocess.Popen(
            words, env=variables, cwd=command.folder, stdout=stdout, stderr=stderr, text=True
        )


class Typed(Commands):
    """Commands that are forked, until the block ends.

    They are the commands of this clone, or of another release whose packages are in `source`.
    """

    def __init__(self, source: Path = ROOT) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=ROOT,
                # GRPC_VERBOSITY: as `serve` has it before it imports gRPC. PYTHONSAFEPATH: the working
                # directory must not come before `source`, because it has packages of the same names.
                env={
                    "PATH": PATH,
                    "PYTHONPATH": os.pathsep.join(dict.fromkeys((str(source), str(ROOT)))),
                    "PYTHONSAFEPATH": "1",
                    "GRPC_VERBOSITY": "NONE",
                },
                pass_fds=(theirs.fileno(),),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process, self._ours:
            process.kill()

    def start(
        self, command: Command, stdout: IO[str], stderr: IO[str], namespace: Path | None = None
    ) -> Running:
        """Start a command with our umask, optionally in this namespace of mounts or network."""
        os.umask(umask := os.umask(0o077))
        variables = {"PATH": PATH, **command.environment}
        where = "" if namespace is None else str(namespace)
        asked = json.dumps([where, str(command.folder), command.arguments, variables, umask])
        answer, saying = os.pipe()
        try:
            socket.send_fds(self._ours, [asked.encode()], [stdout.fileno(), stderr.fileno(), saying])
        finally:
            os.close(saying)
        return Running(FileIO(answer))


@dataclass(frozen=True)
class Mounted(Commands):
    """Forked commands that see the file systems of a namespace."""

    typed: Typed
    mounts: Path
    enter: tuple[str, ...] = ()

    def start(self, command: Command, stdout: IO[str], stderr: IO[str]) -> Running:
        """Start a command in the namespace."""
        return self.typed.start(command, stdout, stderr, self.mounts)


@dataclass(frozen=True)
class Networked(Commands):
    """Forked commands in the network of a namespace."""

    typed: Typed
    network: Path
    enter: tuple[str, ...] = ()

    def start(self, command: Command, stdout: IO[str], stderr: IO[str]) -> Running:
        """Start a command in the namespace."""
        return self.typed.start(command, stdout, stderr, self.network)


def _stand_in(namespace: str) -> None:
    """Enter a namespace of mounts or network, like nsenter(1)."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(namespace).open("rb") as opened:
        if libc.setns(opened.fileno(), _ANY_NAMESPACE) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), namespace)


def _become(
    streams: list[int],
    namespace: str,
    folder: str,
    arguments: list[str],
    environment: Mapping[str, str],
    umask: int,
) -> None:
    """Give this process the streams, folder, arguments and environment of a command."""
    if namespace:
        _stand_in(namespace)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.umask(umask)
    sys.argv = ["meshwright", *arguments]
    for number, item in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
        os.dup2(item, number)
        os.close(item)


def forked() -> int:
    """Fork, so that a SIGINT that the child gets at once ends it; return the result of os.fork.

    In a child that was just forked, Python drops signals that came before it was ready, and prints and
    ignores a KeyboardInterrupt that is raised in a hook of the fork. SIGINT therefore waits in the kernel
    until the fork is complete.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child


def _await_command(here: socket.socket) -> None:
    """Fork twice for each received command, once to report its status; return in the inner child alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the reporting processes are not waited for
    while True:
        asked, sent, _, _ = socket.recv_fds(here, _MOST, 3)
        if not asked:
            raise SystemExit
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            here.close()
            *streams, saying = sent
            child = forked()
            if child == 0:
                os.close(saying)
                _become(streams, *json.loads(asked))
                return
            for stream in streams:
                os.close(stream)
            os.write(saying, f"{child}\n".encode())
            os.write(saying, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
            os._exit(0)
        for number in sent:
            os.close(number)


def preload() -> None:
    """Import the modules of commands, and the drivers."""
    (packages,) = importlib.import_module("meshwright").__path__
    # Another release may lack some of these modules; its commands then import what they need.
    missing = () if Path(packages) == ROOT / "meshwright" else (ModuleNotFoundError,)
    for module in (
        "meshwright.admin.pages.proxies.decoding",
        "meshwright.cli.offline.bootstrap",
        "meshwright.cli.identities.issuing",
        "meshwright.cli.main",
        "meshwright.cli.offline.mesh",
        "meshwright.cli.process.server_program",
        "meshwright.cli.printing.table",
    ):
        with contextlib.suppress(*missing):
            importlib.import_module(module)
    for package in (
        "listener",
        "route",
        "cluster",
        "endpoint",
    ):  # what admin.pages.decoding imports when it is used
        importlib.import_module(f"envoy_data_plane.envoy.config.{package}.v3")
    registry = importlib.import_module("meshwright.sidecars.registry")
    registry.DriverRegistry.discover()  # imports the drivers


def command_ends() -> None:
    """Run the command in `sys.argv`, and end this process with its status."""
    try:
        importlib.import_module("meshwright.cli.main").main()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))  # to take down all that is imported takes longer than the command


if __name__ == "__main__":
    preload()
    gc.freeze()  # what is imported stays shared
    _await_command(socket.socket(fileno=int(sys.argv[1])))
    command_ends()
