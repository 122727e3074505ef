"""What a bug report holds: what the server's API says, its checks and metrics, some proxies, a log's end."""

import http.client
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import quote

from meshwright.cli.bugs import redaction as concealed
from meshwright.cli.errors import CommandFailed
from meshwright.cli.printing.responses import records
from meshwright.cli.socket.client import api, proxy_path
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import reached_from_here
from meshwright.mesh.terminal.printable import on_one_line, printable

PAGES: Final = {
    "proxy": "/proxies",
    "xds": "/streams",
    "published": "/published",
    "policies": "/policies",
    "certs": "/certificates",
    "config": "/config",
    "loop": "/loop",
    "sources": "/sources",
}
"""What the API says without a question, by the names of pages; nothing that grows as a mesh's square."""
LOG_BYTES: Final = 4 * 1024 * 1024
_LIBRARIES: Final = ("aiohttp", "grpcio", "protobuf", "cryptography", "prometheus_client", "structlog")
_SECONDS: Final = 10.0


@dataclass
class Report:
    """Files by name, and what could not be had, with why.

    With `values` what users have written into objects is in them, and what proxies are configured with.
    """

    values: bool = False
    files: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(
        self, name: str, made: Callable[[], object], put: Callable[[object], object] = concealed.of_json
    ) -> object:
        """Add what is made as JSON, without secrets, and return it; note why where it cannot be had."""
        try:
            found = made()
        except (CommandFailed, OSError, ValueError, http.client.HTTPException) as error:
            self.missing[name] = concealed.of_text(" ".join(str(error).split()))
            return None
        self.files[name] = json.dumps(put(found), indent=2, sort_keys=True) + "\n"
        return found

    def add_text(self, name: str, made: Callable[[], str]) -> None:
        """Add lines of text, without secrets and control characters; note why where they cannot be had.

        Somebody will look at them in a terminal, and a log has what strangers have sent.
        """
        try:
            self.files[name] = printable(concealed.of_log(made()))
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.missing[name] = concealed.of_text(" ".join(str(error).split()))


def server(report: Report, state: Path, most_proxies: int) -> None:
    """Add all that the server of a state directory says, and what some proxies were told, and when."""
    of_policies = concealed.of_json if report.values else concealed.of_policies
    found = {
        name: report.add(
            f"pages/{name}.json",
            partial(api, state, path),
            of_policies if name == "policies" else concealed.of_json,
        )
        for name, path in PAGES.items()
    }
    report.add_text("metrics.txt", partial(_metrics, found["config"]))
    for name in _most_wanted(found["proxy"], most_proxies):
        at = proxy_path(name)
        folder = f"proxies/{quote(name, safe='')}"
        report.add(f"{folder}/streams.json", partial(api, state, "/streams", {"proxy": name}))
        report.add(f"{folder}/history.json", partial(api, state, f"{at}/pushes"))
        if report.values:
            report.add(f"{folder}/configuration.json", partial(api, state, f"{at}/configuration"))


def log(report: Report, path: Path) -> None:
    """Add a log's end."""
    report.add_text(f"logs/{on_one_line(path.name)}", lambda: _end(path))


def about(report: Report, now: datetime) -> None:
    """Add what this program and machine are, what else is in the report, and what is missing in it."""
    system = os.uname()
    report.files["about.json"] = json.dumps(
        {
            "at": now.isoformat(),
            "version": version("meshwright"),
            "python": sys.version.split()[0],
            "libraries": dict(_libraries()),
            "system": f"{system.sysname} {system.release} {system.machine}",
            "libc": " ".join(platform.libc_ver()),
            "files": sorted(report.files),
            "missing": report.missing,
        },
        indent=2,
        sort_keys=True,
    ) + "\n"  # fmt: skip


def _libraries() -> Iterator[tuple[str, str]]:
    for name in _LIBRARIES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"


def _most_wanted(found: object, most: int) -> list[str]:
    """Return common names of proxies: first those of which something is to be said, then by name."""
    listed = records(found, "proxies") if isinstance(found, Mapping) else []
    listed.sort(key=lambda each: (each.get("state") == "ended" or not each.get("why"), str(each.get("cn"))))
    return [str(each["cn"]) for each in listed if each.get("cn")][:most]


def _metrics(config: object) -> str:
    """Ask the server for its metrics, where it says that it listens."""
    listening = config.get("listening") if isinstance(config, Mapping) else None
    said = listening.get("http") if isinstance(listening, Mapping) else None
    if said is None:
        raise ValueError("the server does not say where it listens")
    at = HostPort.parse(str(said))
    connection = http.client.HTTPConnection(reached_from_here(at.host), at.port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def _end(path: Path) -> str:
    """Return a file's last bytes, from the beginning of a line on."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_BYTES))
        text = file.read().decode(errors="replace")
    return text if size <= LOG_BYTES else text.partition("\n")[2]
