"""Sidecars of a mesh: a Go program with one certificate, connection and stream for each sidecar."""

import base64
import contextlib
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes.programs import BenchmarkError

CONNECTING: Final = "5m"
"""Maximum time until sidecars that connect at once have their first configuration, as a Go duration."""


@dataclass(frozen=True, slots=True)
class ReceivedResponse:
    """One response: times of receipt and ACK (seconds since the epoch), sidecar number, and contents."""

    received: float
    acked: float
    proxy: int
    kind: str
    size: int
    resources: int
    removed: int


@dataclass(frozen=True, slots=True)
class Report:
    """All responses since the previous report.

    After connecting, `configured` has a time for each sidecar. `refused` counts streams that the control
    plane refused for lack of room; their sidecars connected again.
    """

    responses: tuple[ReceivedResponse, ...]
    configured: tuple[float, ...]
    lost: int
    losses: tuple[str, ...]
    refused: int

    @property
    def proxies(self) -> frozenset[int]:
        """Numbers of the sidecars that got a response."""
        return frozenset(response.proxy for response in self.responses)

    @property
    def last_ack(self) -> float:
        """Time of the last acknowledgement in seconds since the epoch; 0 without responses."""
        return max((response.acked for response in self.responses), default=0.0)

    @property
    def size(self) -> int:
        """Bytes of all responses to the sidecars."""
        return sum(response.size for response in self.responses)

    @property
    def resources(self) -> int:
        """Number of resources in all responses, including removed ones."""
        return sum(response.resources + response.removed for response in self.responses)


class Sidecars:
    """Simulated sidecars in the load generator, which processes one command at a time."""

    def __init__(self, process: subprocess.Popen[str], names: Sequence[str]) -> None:
        self._process = process
        self._numbers = {name: number for number, name in enumerate(names)}
        self.connected = 0

    def connect(self, count: int | None = None) -> Report:
        """Open streams until the first `count` sidecars are connected and have all requested resources."""
        wanted = len(self._numbers) if count is None else count
        report = self._do(f"connect {wanted}")
        self.connected = wanted
        return report

    def among(self, names: Iterable[str]) -> frozenset[int]:
        """Return the numbers of the connected sidecars among these names, for example `{0, 1}`."""
        numbers = (self._numbers.get(name, self.connected) for name in names)
        return frozenset(number for number in numbers if number < self.connected)

    def wait(self, count: int = 0, quiet: float = 0.3, limit: float = 60.0) -> Report:
        """Wait until `count` sidecars have a response and `quiet` seconds are silent, or until `limit`."""
        return self._do(f"wait {count} {round(quiet * 1000)} {round(limit * 1000)}")

    def disconnect(self) -> None:
        """Close the connection of every sidecar."""
        self._do("disconnect")
        self.connected = 0

    def _do(self, command: str) -> Report:
        assert self._process.stdin is not None  # noqa: S101 - both are pipes, see `sidecars`
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BenchmarkError(f"the sidecars ended during the command {command!r}")
        answer = json.loads(line)
        responses = (
            ReceivedResponse(
                response["received"] / 1e9,
                response["acked"] / 1e9,
                response["proxy"],
                response["type"],
                response["bytes"],
                response["resources"],
                response["removed"],
            )
            for response in answer["responses"] or ()
        )
        configured = tuple(moment / 1e9 for moment in answer["configured"] or ())
        losses = tuple(answer["losses"] or ())
        return Report(tuple(responses), configured, answer["lost"], losses, answer["refused"])


@contextlib.contextmanager
def sidecars(
    program: Path,
    address: str,
    directory: Path,
    names: Sequence[str],
    nodes: Mapping[str, bytes] | None = None,
) -> Iterator[Sidecars]:
    """Start sidecars with these names and the certificates in `directory`; stop them at the end of the block.

    With `nodes`, an encoded Node for each name, the sidecars use plaintext.
    """
    listed = directory / "names"
    encoded = {name: base64.b64encode(node).decode() for name, node in (nodes or {}).items()}
    lines = (f"{name} {encoded.get(name, '')}\n" for name in names)
    # A file, because thousands of names may not fit into a command line.
    listed.write_text("".join(lines), encoding="utf-8")
    tls = "" if nodes is not None else directory
    process = subprocess.Popen(
        [program, "-address", address, "-tls-dir", tls, "-names", listed, "-deadline", CONNECTING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Sidecars(process, names)
    finally:
        process.kill()
        process.communicate()
