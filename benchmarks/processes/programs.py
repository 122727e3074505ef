"""The programs of a benchmark: servers to be measured from outside, and the load generator."""

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
"""The folder of the benchmarks."""
PATIENCE: Final = 30.0
"""Seconds that a server may take to start."""
PEERS: Final = HERE.parent
"""Where the servers run that are nobody's checkout: this project's root."""


class BenchmarkError(RuntimeError):
    """A program of the benchmark failed; what it said stands above."""


def build(source: str) -> Path:
    """Build the Go program below `benchmarks/<source>` and return it; go's own cache makes this quick."""
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
    """The checkout of this project whose servers are measured: its root, and its own Python."""

    root: Path = HERE.parent
    python: Path = Path(sys.executable)

    @classmethod
    def at(cls, root: Path) -> "Checkout":
        """Return another checkout, set up by its own `make setup`; raise BenchmarkError if it is not."""
        python = root.resolve() / ".venv" / "bin" / "python"
        if not python.exists():
            raise BenchmarkError(f"{root} is no checkout that is set up: no {python}")
        return cls(root.resolve(), python)

    @property
    def program(self) -> tuple[str, ...]:
        """Return the command of the program."""
        return (str(self.python), "-c", "from meshwright.cli.main import main; main()")

    @property
    def watched(self) -> tuple[str, ...]:
        """Return the command of the program as `benchmarks.inspected_server` of this checkout runs it."""
        imported = (
            f"import sys; sys.path.insert(0, {str(PEERS)!r}); from benchmarks.inspected_server import main"
        )
        return (str(self.python), "-c", f"{imported}; del sys.path[0]; main()")

    def module(self, name: str) -> tuple[str, ...]:
        """Return the command of one of its modules."""
        return (str(self.python), "-m", name)


@cache
def compile_all(checkout: Checkout) -> None:
    """Have a checkout and its libraries compiled, as whoever installs it has them; once in this process.

    Where no bytecode is written (PYTHONDONTWRITEBYTECODE) each start compiles what was edited since: half a
    second of CPU. Not all that libraries bring along can be compiled.
    """
    command = [str(checkout.python), "-m", "compileall", "-q", "-r", "20", "."]
    subprocess.run(command, cwd=checkout.root, stdout=subprocess.DEVNULL, check=False)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs."""

    process: subprocess.Popen[bytes]
    port: int
    control: str

    def cpu_seconds(self) -> float:
        """Return user and system time of the process."""
        return cpu_seconds(self.process.pid)

    def memory_mib(self) -> tuple[float, float]:
        """Return resident memory now, and the most that it was."""
        found = memory(self.process.pid)
        return found.resident, found.peak

    def streams(self) -> int:
        """Return how many streams the server has."""
        return int(json.loads(self.get("/stats"))["streams"])

    def get(self, path: str) -> bytes:
        """Ask the control port."""
        with urllib.request.urlopen(f"{self.control}{path}", timeout=PATIENCE) as answer:  # noqa: S310 - http only
            return bytes(answer.read())


@contextlib.contextmanager
def serving(
    command: Sequence[str | Path], tls: Path, ports: Sequence[int] = (), root: Path = PEERS
) -> Iterator[Server]:
    """Start a server in the folder `root`, wait until it answers, and stop it in the end."""
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
    """Let SIGTERM end this program as an exit does, so that it ends what it started."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _await(server: Server) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            server.get("/stats")
            return
        except OSError as error:
            if server.process.poll() is not None:
                raise BenchmarkError(f"the server ended with {server.process.returncode}") from error
            if time.monotonic() > deadline:
                raise BenchmarkError(f"the server does not answer after {PATIENCE} s") from error
            time.sleep(0.02)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Milliseconds."""

    p50: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Load:
    """What the load generator says of one command; `last_ack_ms` has a value per round.

    `refused` are connections that came to nothing; who made them came again.
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
    """A running load generator, which obeys one command at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, command: str) -> Load:
        """Give a command and wait for its answer; raise BenchmarkError if it gives up."""
        assert self._process.stdin is not None  # noqa: S101 - both are pipes, see `loading`
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BenchmarkError(f"the load generator gave up at {command!r}")
        answer = json.loads(line)
        for key in ("last_ack_ms", "each_ack_ms"):
            answer[key] = Distribution(**answer[key])
        return Load(**answer)


@contextlib.contextmanager
def loading(program: Path, server: Server, tls: Path, *options: str) -> Iterator[LoadGenerator]:
    """Start a load generator against a server, and stop it in the end."""
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
