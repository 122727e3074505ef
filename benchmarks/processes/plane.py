"""The real control plane as a process, with queries for log, metrics, profile and memory census."""

import contextlib
import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.processes.programs import BenchmarkError, Checkout, compile_all
from benchmarks.processes.usage import cpu_seconds
from tools.ports import free_port
from tools.process_end import end

STARTED: Final = ("server started", "serving")
"""Log events of a server with open ports: the current name, and the name in older checkouts."""

PATIENCE: Final = 600.0
"""Maximum seconds until a control plane serves a mesh."""
HERE: Final = Checkout()
COMMAND: Final = HERE.program

Series = dict[tuple[str, ...], float]
"""Values of metrics by name and label values, for example by `("meshwright_values_total", "computed")`."""


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds of wall-clock and CPU time from the start of the process until proxies are served."""

    wall: float
    cpu: float


class ControlPlane:
    """A running control plane; all times are in seconds."""

    def __init__(self, process: subprocess.Popen[bytes], ads: int, http: int, log: Path) -> None:
        self.process = process
        self.ads = f"127.0.0.1:{ads}"
        self._http = f"http://127.0.0.1:{http}"
        self._log = log
        self._sampled = 0

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.process.pid

    def cpu(self) -> float:
        """Return the CPU seconds used so far."""
        return cpu_seconds(self.process.pid)

    def metrics(self) -> Series:
        """Query the control plane's metrics."""
        with urllib.request.urlopen(f"{self._http}/metrics", timeout=30) as answer:  # noqa: S310 - http only
            text = answer.read().decode()
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def lateness(self) -> float:
        """Return the maximum delay of the server's event loop in the last seconds."""
        return self.metrics()[("meshwright_event_loop_lateness_seconds",)]

    @contextlib.contextmanager
    def sampling(self, profile: Path | None, name: str) -> Iterator[None]:
        """Profile the server while the block runs, if `profile` is a folder."""
        if profile is None:
            yield
            return
        self.process.send_signal(signal.SIGUSR1)
        yield
        self.process.send_signal(signal.SIGUSR1)
        self._sampled += 1
        written = profile / f"{self._sampled}.txt"
        # A complete profile ends with an empty line.
        self.until(
            lambda: written.exists() and written.read_text("utf-8").endswith("\n\n"), "writes its profile"
        )
        written.rename(profile / f"{name.replace(' ', '-')}.txt")

    def census(self, written: Path) -> dict[str, Any]:
        """Let the server count its objects (`benchmarks.profiles.census`), and return the result."""
        self.process.send_signal(signal.SIGUSR2)
        self.until(written.exists, "counts its objects")
        return dict(json.loads(written.read_text("utf-8")))

    def started(self, began: float) -> Start:
        """Wait until the server serves; return time and CPU seconds since `began` (monotonic clock)."""
        self.until(lambda: any(map(self.first_log_line, STARTED)), "serves")
        return Start(time.monotonic() - began, self.cpu())

    def first_log_line(self, event: str) -> dict[str, Any] | None:
        """Return the first log line with this event; None if there is none."""
        for line in self._log.read_text(encoding="utf-8").splitlines():
            # The last line may be incomplete while the server writes it.
            if line.startswith("{") and line.endswith("}") and (entry := json.loads(line))["event"] == event:
                return dict(entry)
        return None

    def until(self, condition: Callable[[], bool], outcome: str) -> None:
        """Wait for a condition; raise BenchmarkError if the process ends, or after PATIENCE seconds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None:
                raise BenchmarkError(
                    f"the control plane ended with status {self.process.returncode}: {self._tail()}"
                )
            if time.monotonic() > deadline:
                raise BenchmarkError(f"waited {PATIENCE:.0f} s until the control plane {outcome}")
            # Short, because the time of a start ends with this wait.
            time.sleep(0.005)

    def _tail(self) -> str:
        return " / ".join(self._log.read_text(encoding="utf-8").splitlines()[-3:])


def control_plane(
    mesh: Path, state: Path, profile: Path | None = None, checkout: Checkout = HERE, *, measured: bool = True
) -> contextlib.AbstractContextManager[tuple[ControlPlane, Start]]:
    """Start `meshwright serve` with a folder of manifests; see `serving`."""
    return serving(("--mesh", str(mesh)), state, profile, checkout, measured=measured)


@contextlib.contextmanager
def serving(
    sources: Sequence[str],
    state: Path,
    profile: Path | None = None,
    checkout: Checkout = HERE,
    *,
    measured: bool = True,
) -> Iterator[tuple[ControlPlane, Start]]:
    """Start `meshwright serve` with default settings, wait until it serves, and stop it with the block.

    `sources` are the flags for the source of the mesh. With a folder `profile`, the server can be profiled.
    Tests, which measure nothing, pass `measured=False`: compiling a fresh clone takes 15 s of CPU time.
    """
    ads, http, debug = (free_port("127.0.0.1") for _ in range(3))
    log = state.with_suffix(".log")
    command = [
        *((*checkout.watched, str(profile)) if profile else checkout.program),
        "serve",
        *(*sources, "--state", str(state), "--log-format", "json"),
        *("--ads-address", f"127.0.0.1:{ads}", "--http-address", f"127.0.0.1:{http}"),
        *("--debug-address", f"127.0.0.1:{debug}"),
    ]
    if measured:  # before the clock starts, because compiling is no part of the start
        compile_all(checkout)
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=checkout.root, stdout=output, stderr=output)
    plane = ControlPlane(process, ads, http, log)
    try:
        yield plane, plane.started(began)
    finally:
        end(process, 30)
