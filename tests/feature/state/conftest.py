"""The program as it is run, with a state directory that a test does something to."""

import asyncio
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.feature.serve.delta_sidecar import Sidecar
from tests.typed import Commands, Process, Typed
from xds.protocol.resource import CLUSTER, LISTENER

MANIFESTS = """
apiVersion: v1
kind: Service
metadata: {name: store, namespace: shop}
spec: {selector: {app: store}, ports: [{name: http, port: 80, targetPort: 18080}]}
"""
WORKLOAD = """
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: w-NAME, namespace: shop, labels: {app: store}}
spec: {address: 10.0.0.NUMBER, uuid: NAME, serviceAccount: store}
"""
PROXIES = ("one", "two", "three")
SECONDS = 60.0


@dataclass
class Server:
    """A running `meshwright serve`, where it listens, and its log so far."""

    process: Process
    log_path: Path
    bound: dict[str, Any] = field(default_factory=dict)

    def log(self) -> list[dict[str, Any]]:
        """Return the lines of the log."""
        lines = self.log_path.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the lines about one event."""
        return [line for line in self.log() if line["event"] == event]

    def get(self, path: str) -> tuple[int, str]:
        """Ask the HTTP server."""
        try:
            with urllib.request.urlopen(f"http://{self.bound['http']}{path}", timeout=SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        """Return the value of a metric without labels."""
        (line,) = (each for each in self.get("/metrics")[1].splitlines() if each.startswith(name + " "))
        return float(line.rpartition(" ")[2])

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds."""
        limit = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < limit, self.log()[-10:]
            assert self.process.poll() is None
            time.sleep(0.02)

    def stop(self) -> None:
        """Tell it to stop, which it does in order."""
        self.process.terminate()
        assert self.process.wait(SECONDS) == 0


class Program:
    """Runs the program against one state directory; `files` is where everything else is."""

    def __init__(self, state: Path, files: Path, commands: Commands) -> None:
        self.state = state
        self.files = files
        self.commands = commands
        self.environment: dict[str, str] = {}
        self.serials: tuple[str, ...] = ()
        self.mesh = files / "mesh"
        self.mesh.mkdir(parents=True)
        workloads = (
            WORKLOAD.replace("NAME", each).replace("NUMBER", str(n)) for n, each in enumerate(PROXIES, 1)
        )
        (self.mesh / "mesh.yaml").write_text(MANIFESTS + "".join(workloads))
        self._running: list[Process] = []

    def serve(self, *flags: str) -> Server:
        """Start the server, and return once it serves."""
        server = self._started(*flags)

        def serving() -> bool:
            found = server.said("serving")
            server.bound = found[0] if found else {}
            return bool(found)

        server.until(serving)
        return server

    def refused(self, *flags: str) -> str:
        """Start a server that must not start; return the one sentence that it ends with."""
        server = self._started(*flags)
        assert server.process.wait(SECONDS) == 1, server.log_path.read_text()
        (sentence,) = (line for line in server.log_path.read_text().splitlines() if not line.startswith("{"))
        return sentence.removeprefix("meshwright: ")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return its status and what it printed and complained of."""
        done = self.commands.run(self.files, arguments, self.environment, SECONDS)
        return done.returncode, done.stdout, done.stderr.removeprefix("meshwright: ").strip()

    def issue(self, uuid: str, out: Path | None = None) -> tuple[int, str, str]:
        """Have a proxy certificate issued, into a directory of its name without `out`."""
        out = out or self.files / uuid
        return self.run(
            *("certs", "issue-proxy", "--state", str(self.state), "--uuid", uuid, "--service", "store"),
            *("--namespace", "shop", "--out", str(out)),
        )

    def issued(self, *uuids: str) -> list[str]:
        """Have proxy certificates issued; return their serials."""
        serials = []
        for uuid in uuids:
            status, out, complaint = self.issue(uuid)
            assert status == 0, complaint
            serials.append(out.splitlines()[1].removeprefix("serial "))
        return serials

    def revoke(self, serial: str) -> tuple[int, str, str]:
        """Revoke a certificate."""
        return self.run("certs", "revoke", "--state", str(self.state), serial)

    def served(self, server: Server, uuid: str) -> bool:
        """Connect with a certificate; say whether clusters and listeners came, or the stream ended before."""
        return asyncio.run(self._served(str(server.bound["ads"]), uuid))

    async def _served(self, address: str, uuid: str) -> bool:
        name = f"{uuid}.store.shop"
        for end in ("pem", "key"):
            shutil.copy(self.files / uuid / f"proxy.{end}", self.files / uuid / f"{name}.{end}")
        sidecar, wanted = Sidecar(name), {CLUSTER, LISTENER}
        running = asyncio.create_task(sidecar.run(address, self.files / uuid))
        async with asyncio.timeout(SECONDS):
            while (
                not (served := wanted <= {each.type_url for each in sidecar.responses}) and not running.done()
            ):
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return served

    def end(self) -> None:
        """Kill whatever still runs."""
        for process in self._running:
            process.kill()
            process.wait()

    def _started(self, *flags: str) -> Server:
        at = ("--mesh", str(self.mesh), "--state", str(self.state))
        addresses = [f"--{each}-address=127.0.0.1:0" for each in ("ads", "http", "debug")]
        log_path = self.files / f"serve-{len(self._running)}.log"
        arguments = (
            *("serve", *at, *addresses),
            *("--log-format=json", "--set", "drain_seconds=0.2", *flags),
        )
        with log_path.open("w") as log, Path(os.devnull).open("w") as nowhere:
            process = self.commands.start(self.files, arguments, self.environment, nowhere, log)
        self._running.append(process)
        return Server(process, log_path)


@dataclass(frozen=True)
class Used:
    """What a program leaves that has issued certificates and served for a while: its files, their serials."""

    files: Path
    serials: tuple[str, ...]


@pytest.fixture(scope="session")
def used_once(tmp_path_factory: pytest.TempPathFactory, typed: Typed) -> Used:
    """Have a state directory used once, for all tests that begin with one."""
    files = tmp_path_factory.mktemp("used")
    program = Program(files / "state", files, typed)
    try:
        serials = program.issued(*PROXIES)
        program.serve().stop()
    finally:
        program.end()
    return Used(files, tuple(serials))


@pytest.fixture
def used(program: Program, used_once: Used) -> Program:
    """Return the program with a state directory that a server has used, and its proxies' certificates."""
    for name in ("state", *PROXIES):
        shutil.copytree(used_once.files / name, program.files / name)
    program.serials = used_once.serials
    return program


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """Return the program with a state directory that is not there yet."""
    made = Program(tmp_path / "state", tmp_path, typed)
    yield made
    made.end()
