"""Files of a bug report: answers of the server's API, metrics, some proxies, and the end of a log."""

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
"""API paths without arguments, by the names of their files; pages that grow with a mesh's square are
excluded."""
LOG_BYTES: Final = 4 * 1024 * 1024
_LIBRARIES: Final = ("aiohttp", "grpcio", "protobuf", "cryptography", "prometheus_client", "structlog")
_SECONDS: Final = 10.0


@dataclass
class Report:
    """Files of a bug report by name, and the reasons for missing files by name.

    `values`: include values from users' objects and the configuration of proxies.
    """

    values: bool = False
    files: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(
        self, name: str, made: Callable[[], object], put: Callable[[object], object] = concealed.of_json
    ) -> object:
        """Add the result of `made` as JSON without secrets, and return the result.

        If `made` fails, note the reason in `missing` and return None. `put` removes the secrets.
        """
        try:
            result = made()
        except (CommandFailed, OSError, ValueError, http.client.HTTPException) as error:
            self.missing[name] = concealed.of_text(" ".join(str(error).split()))
            return None
        self.files[name] = json.dumps(put(result), indent=2, sort_keys=True) + "\n"
        return result

    def add_text(self, name: str, made: Callable[[], str]) -> None:
        """Add text without secrets and control characters; if `made` fails, note the reason in `missing`.

        Control characters are removed because a log contains text from strangers, and people read the report
        in a terminal.
        """
        try:
            self.files[name] = printable(concealed.of_log(made()))
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.missing[name] = concealed.of_text(" ".join(str(error).split()))


def server(report: Report, state: Path, most_proxies: int) -> None:
    """Add the reports of a state directory's server, and the streams and pushes of some proxies."""
    of_policies = concealed.of_json if report.values else concealed.of_policies
    result = {
        name: report.add(
            f"pages/{name}.json",
            partial(api, state, path),
            of_policies if name == "policies" else concealed.of_json,
        )
        for name, path in PAGES.items()
    }
    report.add_text("metrics.txt", partial(_metrics, result["config"]))
    for name in _most_wanted(result["proxy"], most_proxies):
        at = proxy_path(name)
        folder = f"proxies/{quote(name, safe='')}"
        report.add(f"{folder}/streams.json", partial(api, state, "/streams", {"proxy": name}))
        report.add(f"{folder}/history.json", partial(api, state, f"{at}/pushes"))
        if report.values:
            report.add(f"{folder}/configuration.json", partial(api, state, f"{at}/configuration"))


def log(report: Report, path: Path) -> None:
    """Add the last bytes of a log file (LOG_BYTES at most)."""
    report.add_text(f"logs/{on_one_line(path.name)}", lambda: _end(path))


def about(report: Report, now: datetime) -> None:
    """Add about.json: versions of program and machine, and the report's files and missing files."""
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


def _most_wanted(result: object, most: int) -> list[str]:
    """Return at most `most` common names of proxies: first those with a reported problem, then by name."""
    listed = records(result, "proxies") if isinstance(result, Mapping) else []
    # A proxy with `why` has something to explain, unless it is gone.
    listed.sort(key=lambda item: (item.get("state") == "ended" or not item.get("why"), str(item.get("cn"))))
    return [str(item["cn"]) for item in listed if item.get("cn")][:most]


def _metrics(config: object) -> str:
    """Return the server's metrics from its HTTP address; raise ValueError if there is no address."""
    listening = config.get("listening") if isinstance(config, Mapping) else None
    answer = listening.get("http") if isinstance(listening, Mapping) else None
    if answer is None:
        raise ValueError("the server's answer lacks an address")
    at = HostPort.parse(str(answer))
    connection = http.client.HTTPConnection(reached_from_here(at.host), at.port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def _end(path: Path) -> str:
    """Return at most LOG_BYTES from the end of a file, beginning with a whole line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_BYTES))
        text = file.read().decode(errors="replace")
    # The first line is incomplete if the file is longer.
    return text if size <= LOG_BYTES else text.partition("\n")[2]
