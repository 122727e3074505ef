"""Programs of a benchmark: measured servers, and the load generator."""

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks.processes.usage import cpu_seconds, memory
from tools.ports import free_port
from tools.process_end import end

HERE: Final = Path(__file__).parents[1]
"""Folder of the benchmarks."""
PATIENCE: Final = 30.0
"""Maximum seconds until a server has started."""
PEERS: Final = HERE.parent
"""Working folder of servers that belong to no checkout: the root of this project."""


class BenchmarkError(RuntimeError):
    """Error of a program in the benchmark; its output is printed before."""


def build(source: str) -> Path:
    """Build the Go program in `benchmarks/<source>`, and return its path.

    Go's cache makes repetitions quick.
    """
    target = HERE / "bin" / Path(source).name
    try:
        subprocess.run(["go", "build", "-o", target, "."], cwd=HERE / source, check=True)
    except FileNotFoundError as error:
        raise BenchmarkError("the benchmark needs Go (https://go.dev), 1.26 or newer") from error
    except subprocess.CalledProcessError as error:
        raise BenchmarkError(f"benchmarks/{source} does not build") from error
    return target


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of this project with measured servers: its root and its own Python."""

    root: Path = HERE.parent
    python: Path = Path(sys.executable)

    @classmethod
    def at(cls, root: Path) -> "Checkout":
        """Return another checkout with its own `make setup`; raise BenchmarkError if it is not set up."""
        python = root.resolve() / ".venv" / "bin" / "python"
        if not python.exists():
            raise BenchmarkError(f"{root} is not set up, {python} is missing: run `make setup` there")
        return cls(root.resolve(), python)

    @property
    def program(self) -> tuple[str, ...]:
        """Return the start of a `meshwright` command line in this checkout."""
        return (str(self.python), "-c", "from meshwright.cli.main import main; main()")

    @property
    def watched(self) -> tuple[str, ...]:
        """Return the start of a `meshwright` command line that `benchmarks.inspected_server` runs."""
        imported = (
            f"import sys; sys.path.insert(0, {str(PEERS)!r}); from benchmarks.inspected_server import main"
        )
        return (str(self.python), "-c", f"{imported}; del sys.path[0]; main()")

    def module(self, name: str) -> tuple[str, ...]:
        """Return the start of a command line that runs the module `name` of this checkout."""
        return (str(self.python), "-m", name)


@cache
def compile_all(checkout: Checkout) -> None:
    """Compile a checkout and its libraries to bytecode, as in an installation; once per process.

    Without bytecode (PYTHONDONTWRITEBYTECODE) each start compiles modules edited since: half a second of CPU
    time. Some files of libraries cannot be compiled, so errors are ignored.
    """
    command = [str(checkout.python), "-m", "compileall", "-q", "-r", "20", "."]
    subprocess.run(command, cwd=checkout.root, stdout=subprocess.DEVNULL, check=False)


@dataclass(frozen=True, slots=True)
class Server:
    """A running xDS server under measurement."""

    process: subprocess.Popen[bytes]
    port: int
    control: str

    def cpu_seconds(self) -> float:
        """Return the user and system time of the server's process in seconds."""
        return cpu_seconds(self.process.pid)

    def memory_mib(self) -> tuple[float, float]:
        """Return the resident memory of the server in MiB: now, and its maximum."""
        result = memory(self.process.pid)
        return result.resident, result.peak

    def streams(self) -> int:
        """Return the number of xDS streams that the server has now."""
        return int(json.loads(self.get("/stats"))["streams"])

    def get(self, path: str) -> bytes:
        """Send a GET request to the control port of the server."""
        with urllib.request.urlopen(f"{self.control}{path}", timeout=PATIENCE) as answer:  # noqa: S310 - http only
            return bytes(answer.read())


@contextlib.contextmanager
def serving(
    command: Sequence[str | Path], tls: Path, ports: Sequence[int] = (), root: Path = PEERS
) -> Iterator[Server]:
    """Start a server in the folder `root`, wait until it answers, and stop it at the end of the block."""
    port, control = ports or (free_port("127.0.0.1"), free_port("127.0.0.1"))
    more = ["--port", str(port), "--control-port", str(control), "--tls-dir", str(tls)]
    process = subprocess.Popen([*command, *more], cwd=root)
    server = Server(process, port, f"http://127.0.0.1:{control}")
    try:
        _await(server)
        yield server
    finally:
        end(process, 10)


def end_with_sigterm() -> None:
    """Make SIGTERM exit this program normally, so that it stops its child processes."""
    # The default action ends Python without running `finally` blocks.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _await(server: Server) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            server.get("/stats")
            return
        except OSError as error:
            if server.process.poll() is not None:
                raise BenchmarkError(f"the server ended with status {server.process.returncode}") from error
            if time.monotonic() > deadline:
                raise BenchmarkError(f"the server does not answer after {PATIENCE} s") from error
            time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Percentiles and maximum of a measured time in milliseconds."""

    p50: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Load:
    """Report of the load generator about one command; `last_ack` has a value per round.

    `refused` counts failed connections, whose proxies connected again.
    """

    proxies: int
    rounds: int
    seconds: float
    last_ack_ms: Distribution
    each_ack_ms: Distribution
    bytes: int
    responses: int
    resources: dict[str, int]
    lost: int
    losses: list[str] = field(default_factory=list)
    slow_settled: int = 0
    refused: int = 0


class LoadGenerator:
    """A running load generator, which processes one command at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, command: str) -> Load:
        """Send a command and return its report; raise BenchmarkError if the load generator has ended."""
        assert self._process.stdin is not None  # noqa: S101 - both are pipes, see `loading`
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BenchmarkError(f"the load generator ended during the command {command!r}")
        answer = json.loads(line)
        for key in ("last_ack_ms", "each_ack_ms"):
            answer[key] = Distribution(**answer[key])
        return Load(**answer)


@contextlib.contextmanager
def loading(program: Path, server: Server, tls: Path, *options: str) -> Iterator[LoadGenerator]:
    """Start a load generator against a server, and stop it at the end of the block."""
    process = subprocess.Popen(
        [
            program,
            *("-address", f"127.0.0.1:{server.port}", "-control", server.control, "-tls-dir", tls),
            *options,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield LoadGenerator(process)
    finally:
        process.kill()
        process.communicate()
