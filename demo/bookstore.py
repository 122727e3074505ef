"""The running bookstore: starts the control plane, the sidecars and the programs, in this order."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aiohttp

from demo import manifests
from demo.apps.control import AppClient, Socket
from demo.explicit import ExplicitInterception
from demo.interception import Interception
from demo.plane import COMMAND, ControlPlane, PlaneAddresses, find_envoy
from demo.supervisor import Supervisor
from demo.topology import (
    BOOKSTORE,
    BOOKWAREHOUSE,
    MYSQL,
    PLACES,
    SERVICE_PORTS,
    Mode,
    Place,
    Role,
)
from demo.transparent import TransparentInterception
from meshwright.mesh.service import ServiceKey

_REPOSITORY: Final = Path(__file__).parent.parent
_AT_ONCE: Final = 3


class Bookstore:
    """A running bookstore, with handles for watching and checking: `plane`, `programs` and `supervisor`."""

    def __init__(
        self,
        state: Path,
        supervisor: Supervisor,
        interception: Interception,
        *,
        hot_restart: bool = False,
        usual_ports: bool = True,
    ) -> None:
        self.state = state
        self._hot_restart = hot_restart
        self.mesh = state / "mesh"
        self.supervisor = supervisor
        self.interception = interception
        addresses = PlaneAddresses.choose(interception.control_plane, usual=usual_ports)
        self.plane = ControlPlane(self.mesh, state / "control", addresses)
        self.programs = {
            place.name: AppClient(Socket(self._directory(place) / "app.sock")) for place in PLACES
        }

    @classmethod
    async def create(
        cls,
        state: Path,
        supervisor: Supervisor,
        mode: Mode,
        *,
        hot_restart: bool = False,
        usual_ports: bool = True,
    ) -> "Bookstore":
        """Create the network for a mode of interception, and choose free addresses and ports.

        With `hot_restart` each sidecar has a bootstrap override file, and restarts hot when the file changes.
        Without `hot_restart`, Envoys use no shared memory, so a killed demo leaves none behind.
        """
        interception: Interception
        if mode is Mode.TRANSPARENT:
            interception = await TransparentInterception.create(supervisor, state)
        else:
            interception = ExplicitInterception()
        supervisor.at_end(interception.release)
        await interception.prepare()
        return cls(state, supervisor, interception, hot_restart=hot_restart, usual_ports=usual_ports)

    async def start(self, wanted: dict[str, str]) -> None:
        """Start everything with the manifests `wanted` (file → variant); return when all programs answer."""
        manifests.prepare(self.mesh, self.interception.addresses)
        manifests.apply(self.mesh, wanted)
        envoy = find_envoy()
        await self.plane.start(self.supervisor, self.state / "logs")
        # Created by the first certificate, the folder would be closed to all users except root, but sidecars
        # run as another user.
        sidecars = self.state / "sidecars"
        sidecars.mkdir(exist_ok=True)
        sidecars.chmod(0o755)
        # Only a few at a time, because each certificate is issued by a process of its own, which takes CPU
        # time.
        gate = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._equip(place, gate) for place in PLACES))
        for place in PLACES:
            await self._start_sidecar(place, envoy)
        # Servers start before their clients, so that the first calls succeed.
        for place in reversed(PLACES):
            await self._start_program(place)
        for place in PLACES:
            await self.supervisor.until(f"{place.name} answers on its socket", self._is_up(place), 60)

    def target(self, place: Place, service: ServiceKey) -> tuple[str, int]:
        """Return host and port that the program of `place` uses to call a service."""
        return self.interception.addresses.upstream(place, service), SERVICE_PORTS[service]

    async def change(self, wanted: Mapping[str, str]) -> None:
        """Change the manifests to `wanted` (file → variant); see `manifests.apply`."""
        manifests.apply(self.mesh, dict(wanted))

    def check(self) -> None:
        """Raise DemoError if a process has ended unexpectedly."""
        self.supervisor.check()

    def override(self, place: Place) -> Path:
        """Return the path of the bootstrap override of a workload's sidecar."""
        return self._credentials(place) / "override.json"

    def _directory(self, place: Place) -> Path:
        return self.state / "programs" / place.name

    def _credentials(self, place: Place) -> Path:
        return self.state / "sidecars" / place.name

    async def _equip(self, place: Place, gate: asyncio.Semaphore) -> None:
        """Issue the sidecar's certificate, and make service names resolve in the workload's namespace."""
        out = self._credentials(place)
        async with gate:
            await self.plane.issue(place, out)
            if self.interception.mode is Mode.TRANSPARENT:
                await self.interception.name_services(place, await self.plane.hosts(place))
        if self._hot_restart:
            self.override(place).write_text("{}", "utf-8")
        self.interception.own(place, out, sidecar=True)

    async def _start_sidecar(self, place: Place, envoy: str) -> None:
        credentials = self._credentials(place)
        command = [
            str(COMMAND),
            "agent",
            *("--credentials", str(credentials)),
            *("--ads", self.plane.addresses.ads),
            *("--renewal", self.plane.addresses.renewal),
            *("--run", str(credentials / "run")),
            *("--envoy", envoy),
            *("--status", self.interception.status(place)),
            *("--concurrency", "1"),
            # Short periods, because the demo stops all programs and loses no calls of users.
            *("--drain-seconds", "1"),
            *("--termination-least-seconds", "0"),
            *("--termination-most-seconds", "1"),
        ]
        if self._hot_restart:
            command += ["--override", str(self.override(place)), "--parent-shutdown-seconds", "2"]
        else:
            command += ["--no-hot-restart"]
        log = self.state / "logs" / f"sidecar-{place.name}.log"
        await self.supervisor.start(
            f"sidecar of {place.name}", self.interception.sidecar(place, command), log
        )

    async def _start_program(self, place: Place) -> None:
        directory = self._directory(place)
        directory.mkdir(parents=True, exist_ok=True)
        self.interception.own(place, directory, sidecar=False)
        command = [sys.executable, "-m", "demo.apps", place.role.value]
        log = self.state / "logs" / f"{place.name}.log"
        argv = self.interception.program(place, command)
        await self.supervisor.start(place.name, argv, log, self._environment(place))

    def _environment(self, place: Place) -> dict[str, str]:
        environment = {
            "PYTHONPATH": str(_REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",
            "APP_NAME": place.name,
            "APP_CONTROL": str(self._directory(place) / "app.sock"),
        }
        if place.port is not None:
            environment["APP_LISTEN"] = f"{self.interception.addresses.application(place)}:{place.port}"
        match place.role:
            case Role.CLIENT:
                environment["BOOKSTORE_URL"] = self._url(place, BOOKSTORE)
            case Role.STORE:
                environment["BOOKWAREHOUSE_URL"] = self._url(place, BOOKWAREHOUSE)
            case Role.WAREHOUSE:
                environment["DATABASE"] = self._url(place, MYSQL).removeprefix("http://")
            case Role.DATABASE:
                pass
        return environment

    def _url(self, place: Place, service: ServiceKey) -> str:
        host, port = self.target(place, service)
        return f"http://{host}:{port}"

    def _is_up(self, place: Place) -> "_Answers":
        return _Answers(self.programs[place.name])


class _Answers:
    """Condition for `Supervisor.until`: a program answers on its control socket."""

    def __init__(self, program: AppClient) -> None:
        self._program = program

    async def __call__(self) -> bool:
        try:
            await self._program.status()
        except (aiohttp.ClientError, OSError):
            return False
        return True
