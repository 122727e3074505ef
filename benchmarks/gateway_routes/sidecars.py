"""Applications, Envoys and the caller of the measured mesh, on loopback."""

import contextlib
import http.client
import http.server
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.gateway_routes import mesh
from benchmarks.processes.plane import HERE
from benchmarks.processes.programs import BenchmarkError
from tools.process_end import end

PATIENCE: Final = 60.0
"""Maximum seconds until a route decides a request."""
PAUSE: Final = 0.002
"""Seconds between two requests that wait for a route."""


class _Application(http.server.BaseHTTPRequestHandler):
    """Application of a backend, which answers with the address at which it was called."""

    # HTTP/1.0, the default, would end the connection after each answer.
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the backend's address."""
        body = self.connection.getsockname()[0].encode()
        self.send_response(http.client.OK)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name of the base class
        """Write no log."""


@contextlib.contextmanager
def applications() -> Iterator[None]:
    """Serve the applications of both backends."""
    with contextlib.ExitStack() as ends:
        for address in mesh.APPLICATIONS.values():
            server = http.server.ThreadingHTTPServer((address, mesh.APPLICATION_PORT), _Application)
            ends.callback(server.server_close)
            ends.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, name=f"backend {address}", daemon=True).start()
        yield


@contextlib.contextmanager
def envoys(folder: Path, ads: str) -> Iterator[None]:
    """Run the sidecars of the caller and the backends, with credentials below `folder`."""
    program = os.environ.get("MESHWRIGHT_ENVOY") or str(HERE.root / ".envoy" / "bin" / "envoy")
    with contextlib.ExitStack() as ends:
        for number, workload in enumerate(mesh.ADDRESSES):
            own = folder / workload
            command = (*HERE.program, "bootstrap", "--credentials", str(own), "--ads", ads)
            made = subprocess.run(command, cwd=HERE.root, capture_output=True, text=True, check=False)
            if made.returncode:
                raise BenchmarkError(f"`meshwright bootstrap` ended with {made.returncode}: {made.stderr}")
            (own / "envoy.json").write_text(made.stdout, "utf-8")
            log = ends.enter_context((own / "envoy.log").open("wb"))
            process = subprocess.Popen(
                (program, "-c", own / "envoy.json", "--base-id", str(5300 + number), "--concurrency", "1"),
                stdout=log,
                stderr=log,
            )
            # Backwards: the caller's Envoy began first and ends last.
            ends.callback(end, process, PATIENCE)
        yield


class Caller:
    """The caller's application, with one connection for each Service."""

    def __init__(self) -> None:
        self._connections: dict[int, http.client.HTTPConnection] = {}

    def answered_by(self, service: int, path: str) -> str | None:
        """Return the address of the backend that answers; None for any other outcome."""
        place = (mesh.ADDRESSES[mesh.CALLER], mesh.FIRST_LOCAL_PORT + service)
        # A kept connection, so the time of a handshake is not part of the measurement.
        connection = self._connections.setdefault(service, http.client.HTTPConnection(*place, timeout=10))
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode()
        except (OSError, http.client.HTTPException):
            connection.close()
            return None
        return body if answer.status == http.client.OK else None

    def until_answered(self, service: int, path: str, backend: str) -> float:
        """Wait until a backend answers requests for a path; return the seconds."""
        began = time.monotonic()
        while self.answered_by(service, path) != mesh.APPLICATIONS[backend]:
            if time.monotonic() - began > PATIENCE:
                raise BenchmarkError(f"backend {backend} does not answer {path} after {PATIENCE:.0f} s")
            time.sleep(PAUSE)
        return time.monotonic() - began
