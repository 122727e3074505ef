"""The real control plane as a process, and what it says of itself."""

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
"""Event that a server logs when its ports are open: the present name, and the name in older checkouts."""

PATIENCE: Final = 600.0
"""Seconds that a control plane may take to serve a mesh."""
HERE: Final = Checkout()
COMMAND: Final = HERE.program

Series = dict[tuple[str, ...], float]
"""Values of metrics by name and label values."""


@dataclass(frozen=True, slots=True)
class Start:
    """From the start of the process until proxies are served: seconds by the clock and of CPU."""

    wall: float
    cpu: float


class ControlPlane:
    """A running control plane; times are in seconds."""

    def __init__(self, process: subprocess.Popen[bytes], ads: int, http: int, log: Path) -> None:
        self.process = process
        self.ads = f"127.0.0.1:{ads}"
        self._http = f"http://127.0.0.1:{http}"
        self._log = log
        self._sampled = 0

    @property
    def pid(self) -> int:
        """Return its process's identifier."""
        return self.process.pid

    def cpu(self) -> float:
        """Return the CPU that it has used so far."""
        return cpu_seconds(self.process.pid)

    def metrics(self) -> Series:
        """Ask for its metrics."""
        with urllib.request.urlopen(f"{self._http}/metrics", timeout=30) as answer:  # noqa: S310 - http only
            text = answer.read().decode()
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def lateness(self) -> float:
        """Return how late its event loop was at most in the last seconds."""
        return self.metrics()[("meshwright_event_loop_lateness_seconds",)]

    @contextlib.contextmanager
    def sampling(self, profile: Path | None, name: str) -> Iterator[None]:
        """Have the server sample itself while the block runs, if there is a folder for the profile."""
        if profile is None:
            yield
            return
        self.process.send_signal(signal.SIGUSR1)
        yield
        self.process.send_signal(signal.SIGUSR1)
        self._sampled += 1
        written = profile / f"{self._sampled}.txt"
        self.until(
            lambda: written.exists() and written.read_text("utf-8").endswith("\n\n"), "writes its profile"
        )
        written.rename(profile / f"{name.replace(' ', '-')}.txt")

    def census(self, written: Path) -> dict[str, Any]:
        """Have it count its objects (`benchmarks.profiles.census`), and return what it has written."""
        self.process.send_signal(signal.SIGUSR2)
        self.until(written.exists, "counts its objects")
        return dict(json.loads(written.read_text("utf-8")))

    def started(self, began: float) -> Start:
        """Wait until it serves; `began` is when it was started, by the monotonic clock."""
        self.until(lambda: any(map(self.said, STARTED)), "serves")
        return Start(time.monotonic() - began, self.cpu())

    def said(self, event: str) -> dict[str, Any] | None:
        """Return the first line of its log with that event, or None."""
        for line in self._log.read_text(encoding="utf-8").splitlines():
            if line.startswith("{") and line.endswith("}") and (said := json.loads(line))["event"] == event:
                return dict(said)
        return None

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; raise BenchmarkError if the process ends or it takes too long."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None:
                raise BenchmarkError(
                    f"the control plane ended with {self.process.returncode}: {self._tail()}"
                )
            if time.monotonic() > deadline:
                raise BenchmarkError(f"not within {PATIENCE:.0f} s: the control plane {what}")
            time.sleep(0.005)

    def _tail(self) -> str:
        return " / ".join(self._log.read_text(encoding="utf-8").splitlines()[-3:])


def control_plane(
    mesh: Path, state: Path, profile: Path | None = None, checkout: Checkout = HERE
) -> contextlib.AbstractContextManager[tuple[ControlPlane, Start]]:
    """Start `meshwright serve` on a directory of manifests; see `serving`."""
    return serving(("--mesh", str(mesh)), state, profile, checkout)


@contextlib.contextmanager
def serving(
    sources: Sequence[str], state: Path, profile: Path | None = None, checkout: Checkout = HERE
) -> Iterator[tuple[ControlPlane, Start]]:
    """Start `meshwright serve` with its default settings, wait until it serves, and stop it in the end.

    `sources` are the flags that say where its mesh comes from. With `profile`, a folder, it samples itself
    when it is asked to.
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
    compile_all(checkout)
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=checkout.root, stdout=output, stderr=output)
    plane = ControlPlane(process, ads, http, log)
    try:
        yield plane, plane.started(began)
    finally:
        end(process, 30)
