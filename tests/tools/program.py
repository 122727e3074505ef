"""The real program: a server with its log, and commands, with a state directory and a mesh."""

import asyncio
import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.feature.serve.delta_sidecar import Sidecar
from tests.meshes import texts
from tests.tools.deadline import wait_until
from tests.tools.forked_cli import Command, Commands, Process
from xds.protocol.resources.resource import CLUSTER, LISTENER

PROXIES = ("one", "two", "three")
SECONDS = 60.0
DIFFERS = "served configuration differs from a full recomputation"


@dataclass
class Server:
    """A running `meshwright serve`, its addresses, and its log so far."""

    process: Process
    log_path: Path
    bound: dict[str, Any] = field(default_factory=dict)

    def log(self) -> list[dict[str, Any]]:
        """Return the lines of the log."""
        lines = self.log_path.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines of one event."""
        return [line for line in self.log() if line["event"] == event]

    def get(self, path: str) -> tuple[int, str]:
        """Send a request to the HTTP server."""
        try:
            with urllib.request.urlopen(f"http://{self.bound['http']}{path}", timeout=SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        """Return the value of a metric without labels."""
        (line,) = (item for item in self.get("/metrics")[1].splitlines() if item.startswith(name + " "))
        return float(line.rpartition(" ")[2])

    def until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        """Wait until the condition holds.

        A failure shows the end of the log, with the sentence of a server that refused to start.
        """

        def end_of_log() -> str:
            return "\n".join(self.log_path.read_text().splitlines()[-10:])

        def holds() -> object:
            result = condition()
            assert result or self.process.poll() is None, end_of_log()
            return result

        wait_until(holds, seconds, end_of_log)

    def stop(self) -> None:
        """Stop the server by SIGTERM; its status must be 0."""
        self.process.terminate()
        assert self.process.wait(SECONDS) == 0


class Program:
    """Runs the program with one state directory; `files` is the folder of all other files."""

    def __init__(self, state: Path, files: Path, commands: Commands) -> None:
        self.state = state
        self.files = files
        self.commands = commands
        self.environment = {name: value for name, value in os.environ.items() if name == "MESHWRIGHT_VERIFY"}
        self.serials: tuple[str, ...] = ()
        self.mesh = files / "mesh"
        self.reads: tuple[str, ...] = ("--mesh", str(self.mesh))
        self.mesh.mkdir(parents=True)
        workloads = (
            texts.workload(f"w-{proxy}", f"10.0.0.{number}", app="store", account="store", uuid=proxy)
            for number, proxy in enumerate(PROXIES, 1)
        )
        service = texts.service("store", texts.port(80, 18080))
        (self.mesh / "mesh.yaml").write_text(texts.joined(service, *workloads))
        self._started: list[Server] = []

    def serve(self, *flags: str) -> Server:
        """Start the server, and return once it serves."""
        server = self._start(*flags)

        def serving() -> bool:
            result = server.said("server started")
            server.bound = result[0] if result else {}
            return bool(result)

        server.until(serving)
        return server

    def refused(self, *flags: str) -> str:
        """Start a server that must refuse to start; return its only sentence."""
        server = self._start(*flags)
        assert server.process.wait(SECONDS) == 2, server.log_path.read_text()
        assert server.log_path.with_suffix(".out").read_text() == ""
        (sentence,) = (line for line in server.log_path.read_text().splitlines() if not line.startswith("{"))
        return sentence.removeprefix("meshwright: ")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return its status, output and error output."""
        done = self.commands.run(Command(self.files, arguments, self.environment), SECONDS)
        return done.returncode, done.stdout, done.stderr.removeprefix("meshwright: ").strip()

    def issue(self, uuid: str, out: Path | None = None) -> tuple[int, str, str]:
        """Issue a proxy certificate, by default into a directory named after the UUID."""
        out = out or self.files / uuid
        return self.run(
            *("certs", "issue-proxy", "--state", str(self.state), "--uuid", uuid, "--service", "store"),
            *("--namespace", "shop", "--out", str(out), "--anyway"),
        )

    def issued(self, *uuids: str) -> list[str]:
        """Issue proxy certificates; return their serials."""
        serials = []
        for uuid in uuids:
            status, out, complaint = self.issue(uuid)
            assert status == 0, complaint
            serials.append(out.splitlines()[1].removeprefix("serial "))
        return serials

    def revoke(self, serial: str, *options: str) -> tuple[int, str, str]:
        """Revoke a certificate."""
        return self.run("certs", "revoke", "--state", str(self.state), serial, *options)

    def served(self, server: Server, uuid: str) -> bool:
        """Connect with a certificate.

        Return whether clusters and listeners arrived before the stream ended.
        """
        return asyncio.run(self._served(str(server.bound["ads"]), uuid))

    async def _served(self, address: str, uuid: str) -> bool:
        name = f"{uuid}.store.shop"
        for end in ("pem", "key"):
            shutil.copy(self.files / uuid / f"proxy.{end}", self.files / uuid / f"{name}.{end}")
        sidecar, wanted = Sidecar(name), {CLUSTER, LISTENER}
        running = asyncio.create_task(sidecar.run(address, self.files / uuid))
        async with asyncio.timeout(SECONDS):
            while (
                not (served := wanted <= {response.type_url for response in sidecar.responses})
                and not running.done()
            ):
                await asyncio.sleep(0.01)
            if served:  # a call that is cancelled takes acknowledgements with it that are not read yet
                await sidecar.leave()
            await asyncio.gather(running, return_exceptions=True)
        return served

    def end(self) -> None:
        """Kill running servers; none of them may have reported a difference from a full recomputation."""
        for server in self._started:
            server.process.kill()
            server.process.wait()
            assert DIFFERS not in server.log_path.read_text()

    def _start(self, *flags: str) -> Server:
        at = (*self.reads, "--state", str(self.state))
        addresses = [f"--{item}-address=127.0.0.1:0" for item in ("ads", "http", "debug")]
        log_path = self.files / f"serve-{len(self._started)}.log"
        arguments = (
            *("serve", *at, *addresses),
            *("--log-format=json", "--set", "drain_seconds=0.2", *flags),
        )
        with log_path.open("w") as log, log_path.with_suffix(".out").open("w") as out:
            process = self.commands.start(Command(self.files, arguments, self.environment), out, log)
        self._started.append(Server(process, log_path))
        return self._started[-1]
