"""Command `python -m benchmarks.agent`: memory of an idle agent, and of its imports by package.

A real agent runs next to a real Envoy and a real control plane. It is measured when its proxy is ready and
nothing happens. Envoy is a process of its own and does not count. The imports are measured in another process
(`benchmarks.profiles.import_memory`).
"""

import argparse
import contextlib
import json
import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.figures.results import RESULTS, Values, machine, write
from benchmarks.processes.credentials import issue_each
from benchmarks.processes.plane import control_plane
from benchmarks.processes.programs import BenchmarkError, Checkout, end_with_sigterm
from benchmarks.processes.quiet import settled
from benchmarks.processes.usage import Memory, cpu_seconds, memory
from benchmarks.profiles import import_memory
from tools.ports import free_port
from tools.process_end import end

NAME: Final = "alice-uuid.alice.default"
MESH: Final = """
apiVersion: v1
kind: Service
metadata: {name: alice, namespace: default}
spec: {selector: {app: alice}, ports: [{name: http, port: 80}]}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: alice, namespace: default, labels: {app: alice}}
spec: {address: 127.0.0.1, serviceAccount: alice, uuid: alice-uuid}
"""
PATIENCE: Final = 60.0
"""Maximum seconds until the proxy is ready."""
PAUSE: Final = 2.0
"""Seconds of rest before the measurement."""
LEAST: Final = 100
"""KiB below which a package has no row."""
TARGET: Final = 45.0
"""Goal for the resident memory of an idle agent, in MiB."""
BEFORE: Final = (
    "meshwright.cli.main",
    "meshwright.controller.process.logs",
    "meshwright.agent.app",
    "envoy_data_plane.envoy.config.bootstrap.v3",
)
PROGRAM: Final = "meshwright.cli.agent_program"
"""Module imported by the agent's program.

In checkouts without this module BEFORE has the imports of its command.
"""


@dataclass(frozen=True, slots=True)
class ImportMemory:
    """Memory of an idle agent process, and the KiB added by the import of each package."""

    memory: Memory
    packages: Mapping[str, int]


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent", description=__doc__)
    parser.add_argument("--envoy", default=os.environ.get("MESHWRIGHT_ENVOY", "envoy"), help="Envoy itself")
    parser.add_argument("--before", type=Path, help="also measure another checkout, set up by `make setup`")
    parser.add_argument("--output", type=Path, default=RESULTS / "agent.json")
    return parser.parse_args(argv)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a mesh of one proxy with credentials in `folder/credentials`; yield the address of ADS."""
    (folder / "mesh").mkdir()
    (folder / "mesh" / "mesh.yaml").write_text(MESH)
    credentials = folder / "credentials"
    credentials.mkdir()
    issue_each(folder / "state", credentials, [NAME])
    # The agent expects its credentials under these names.
    for kind in ("pem", "key"):
        (credentials / f"{NAME}.{kind}").rename(credentials / f"proxy.{kind}")
    with control_plane(folder / "mesh", folder / "state") as (plane, _):
        yield plane.ads


def at_rest(folder: Path, ads: str, envoy: str, checkout: Checkout) -> Memory:
    """Start an agent, wait until its proxy is ready and the process idle, and measure its memory."""
    status = f"127.0.0.1:{free_port('127.0.0.1')}"
    command = [*checkout.program, "agent", "--credentials", str(folder / "credentials"), "--ads", ads]
    command += ["--run", str(folder / "run"), "--envoy", envoy, "--status", status]
    command += ["--concurrency", "1", "--termination-least-seconds", "0"]
    with (folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=checkout.root, stdout=log, stderr=log)
    try:
        _await_ready(process, f"http://{status}/healthz/ready", folder / "agent.log")
        settled(lambda: cpu_seconds(process.pid))
        # `settled` ends after one idle second, but some work repeats more rarely.
        time.sleep(PAUSE)
        return memory(process.pid)
    finally:
        end(process, 30)


def _await_ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310 - http only
            return
        time.sleep(0.1)
    raise BenchmarkError(f"the proxy is not ready: {log.read_text('utf-8')[-500:]}")


def imports(checkout: Checkout) -> Mapping[str, int]:
    """Return the KiB that the import of each package adds, in a process with the agent's imports."""
    modules = (PROGRAM,) if (checkout.root / f"{PROGRAM.replace('.', '/')}.py").exists() else BEFORE
    # -P keeps this folder out of sys.path, because its modules have the names of installed packages.
    command = [str(checkout.python), "-P", import_memory.__file__, *modules]
    environment = {**os.environ, "PYTHONPATH": str(checkout.root)}
    done = subprocess.run(
        command, cwd=checkout.root, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchmarkError(f"the memory of the imports cannot be measured: {done.stderr}")
    return dict(json.loads(done.stdout))


def sums(import_memories: Mapping[str, ImportMemory]) -> Table:
    """Return a table with the memory of the idle agent of each checkout."""
    out = Table(title="the agent at rest, MiB")
    for heading in ("checkout", "RSS", "its share (PSS)", "peak"):
        out.add_column(heading, justify="right" if heading != "checkout" else "left")
    for name, item in import_memories.items():
        held = item.memory
        out.add_row(name, f"{held.resident:.1f}", f"{held.share:.1f}", f"{held.peak:.1f}")
    return out


def by_package(import_memories: Mapping[str, ImportMemory]) -> Table:
    """Return a table with the KiB that the import of each package adds, the largest first."""
    out = Table(title="by what is imported, KiB")
    out.add_column("package")
    for name in import_memories:
        out.add_column(name, justify="right")
    *_, now = import_memories.values()
    names = {
        name
        for item in import_memories.values()
        for name, kibibytes in item.packages.items()
        if kibibytes >= LEAST
    }
    for name in sorted(names, key=lambda item: (-now.packages.get(item, 0), item)):
        out.add_row(name, *(str(item.packages.get(name, "-")) for item in import_memories.values()))
    out.add_section()
    out.add_row("all", *(str(sum(item.packages.values())) for item in import_memories.values()))
    return out


def main() -> None:
    """Measure, print the tables, and write the results."""
    end_with_sigterm()
    options, console, where = arguments(), Console(width=100), machine()
    before = {} if options.before is None else {"before": Checkout.at(options.before)}
    found: dict[str, ImportMemory] = {}
    for name, checkout in {**before, "now": Checkout()}.items():
        with tempfile.TemporaryDirectory(prefix="agent-") as folder, serving(Path(folder)) as ads:
            found[name] = ImportMemory(at_rest(Path(folder), ads, options.envoy, checkout), imports(checkout))
    for table in (sums(found), by_package(found)):
        console.print(table)
    console.print(f"{'reached' if found['now'].memory.resident <= TARGET else 'missed'}: {TARGET:.0f} MiB")
    write(options.output, where, Values(), agents={name: asdict(item) for name, item in found.items()})
    console.print(f"written to {options.output}")


if __name__ == "__main__":
    main()
