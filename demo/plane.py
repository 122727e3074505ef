"""The control plane of the demo: its process, its commands, and the JSON on its Unix socket."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from demo.supervisor import DemoError, Supervisor, run
from demo.topology import Place
from tools.ports import free_port

COMMAND: Final = Path(os.environ.get("MESHWRIGHT_COMMAND") or Path(sys.executable).parent / "meshwright")
"""The `meshwright` program of the demo's environment; tests set MESHWRIGHT_COMMAND to a replacement."""
_ADS_PORT: Final = 15128
_HTTP_PORT: Final = 9091
_DEBUG_PORT: Final = 9092
_RENEWAL_PORT: Final = 15131


def find_envoy() -> str:
    """Return the path of Envoy: MESHWRIGHT_ENVOY, or `.envoy/bin/envoy` of the clone, or from PATH."""
    local = Path(__file__).parent.parent / ".envoy" / "bin" / "envoy"
    wanted = os.environ.get("MESHWRIGHT_ENVOY")
    result = shutil.which(wanted or str(local)) or (None if wanted else shutil.which("envoy"))
    if result is None:
        named = f"MESHWRIGHT_ENVOY is {wanted}, which is not a program" if wanted else "Envoy was not found"
        raise DemoError(f"{named}: run `make envoy`, which makes .envoy/bin/envoy, or set MESHWRIGHT_ENVOY")
    return str(Path(result).absolute())


@dataclass(frozen=True, slots=True)
class PlaneAddresses:
    """Addresses at which the control plane listens, each as HOST:PORT."""

    ads: str
    http: str
    debug: str
    renewal: str = ""
    """Address for certificate renewal and reports of agents; empty if not served."""

    @classmethod
    def choose(cls, ads_host: str, *, usual: bool = True) -> "PlaneAddresses":
        """Choose the usual ports, or other ports where those are in use; without `usual` always other ports.

        A usual port is free for a moment while its server restarts, so two tests in parallel could choose the
        same one. Without `usual` two tests never get the same port.
        """
        usual_ports = (_ADS_PORT, _HTTP_PORT, _DEBUG_PORT, _RENEWAL_PORT)
        hosts = (ads_host, "127.0.0.1", "127.0.0.1", ads_host)
        return cls(
            *(
                f"{host}:{free_port(host, port if usual else 0)}"
                for host, port in zip(hosts, usual_ports, strict=True)
            )
        )

    def others(self) -> "PlaneAddresses":
        """Return addresses on the same hosts with ports chosen by the system."""
        hosts = (address.rpartition(":")[0] for address in (self.ads, self.http, self.debug, self.renewal))
        return PlaneAddresses(*(f"{host}:{free_port(host)}" if host else "" for host in hosts))


class ControlPlane:
    """The process of `meshwright serve`, and queries to it; `state` is its own state directory."""

    def __init__(self, mesh: Path, state: Path, addresses: PlaneAddresses) -> None:
        self.mesh = mesh
        self.state = state
        self.addresses = addresses

    async def start(self, supervisor: Supervisor, logs: Path, *, again: bool = False) -> None:
        """Start the control plane, and wait until its Unix socket for commands answers."""
        command = [
            str(COMMAND),
            "serve",
            *("--mesh", str(self.mesh)),
            *("--state", str(self.state)),
            *("--ads-address", self.addresses.ads),
            *("--http-address", self.addresses.http),
            *("--debug-address", self.addresses.debug),
        ]
        if self.addresses.renewal:
            command += ["--set", f"renewal_address={self.addresses.renewal}"]
        running = await supervisor.start("meshwright serve", command, logs / "control-plane.log")
        try:
            await supervisor.until("the control plane answers on its socket", self._answers, 60)
        except DemoError:
            # Another process may have taken a port after the choice, so one more try uses other ports. Any
            # other fault fails again in the second try.
            if running.process.returncode is None or again:
                raise
            supervisor.forget(running)
            self.addresses = self.addresses.others()
            await self.start(supervisor, logs, again=True)

    async def _answers(self) -> bool:
        try:
            await self.ask("/debug/proxy")
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False
        return True

    async def ask(self, path: str) -> Mapping[str, object]:
        """Return the JSON object at a path of the Unix socket.

        Raise ClientError or OSError without an answer.
        """
        connector = aiohttp.UnixConnector(str(self.state / "meshwright.sock"))
        headers = {"Accept": "application/json"}
        async with (
            asyncio.timeout(10),
            aiohttp.ClientSession(connector=connector) as session,
            session.get(f"http://localhost{path}", headers=headers) as response,
        ):
            response.raise_for_status()
            answer = await response.json()
            return answer if isinstance(answer, dict) else {"": answer}

    async def issue(self, place: Place, out: Path) -> None:
        """Issue a proxy certificate for a workload's sidecar, and write it to the directory `out`."""
        name = place.proxy_name
        await run(
            [
                str(COMMAND),
                *("certs", "issue-proxy", "--state", str(self.state)),
                *("--uuid", name.uuid, "--service", name.service, "--namespace", name.namespace),
                *("--out", str(out)),
            ]
        )

    async def hosts(self, place: Place) -> str:
        """Return lines of a hosts file with the mesh's service names, for a workload's namespace."""
        namespace = str(place.identity.namespace)
        return await run([str(COMMAND), "hosts", "--state", str(self.state), "--namespace", namespace])
