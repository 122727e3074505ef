"""The bookstore, started: control plane, places, sidecars, programs, in this order."""

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
    """A running bookstore, and the handles by which it is watched and checked."""

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
        """Prepare the places of that mode, and choose free addresses and ports.

        With `hot_restart` the sidecars have an override of their bootstrap each, and restart hot when it
        changes. Without, Envoys share no memory, and leave none if the demo is killed.
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
        """Start everything, with the manifests `wanted` in force; return when all programs answer."""
        manifests.prepare(self.mesh, self.interception.addresses)
        manifests.apply(self.mesh, wanted)
        envoy = find_envoy()
        await self.plane.start(self.supervisor, self.state / "logs")
        # Made with the first certificate it would be closed to all but root, and a sidecar is another user's.
        sidecars = self.state / "sidecars"
        sidecars.mkdir(exist_ok=True)
        sidecars.chmod(0o755)
        gate = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._equip(place, gate) for place in PLACES))
        for place in PLACES:
            await self._start_sidecar(place, envoy)
        # Servers first: a client should find what it calls.
        for place in reversed(PLACES):
            await self._start_program(place)
        for place in PLACES:
            await self.supervisor.until(f"{place.name} answers on its socket", self._is_up(place), 60)

    def target(self, place: Place, service: ServiceKey) -> tuple[str, int]:
        """Return the host and port at which a place's program calls a service."""
        return self.interception.addresses.upstream(place, service), SERVICE_PORTS[service]

    async def change(self, wanted: Mapping[str, str]) -> None:
        """Bring the changing manifests to `wanted`, as `manifests.apply` has it."""
        manifests.apply(self.mesh, dict(wanted))

    def check(self) -> None:
        """Raise DemoError if a process that should run has ended."""
        self.supervisor.check()

    def override(self, place: Place) -> Path:
        """Return the file that is laid over the bootstrap of a place's sidecar."""
        return self._credentials(place) / "override.json"

    def _directory(self, place: Place) -> Path:
        return self.state / "programs" / place.name

    def _credentials(self, place: Place) -> Path:
        return self.state / "sidecars" / place.name

    async def _equip(self, place: Place, gate: asyncio.Semaphore) -> None:
        """Give a place its certificate and names."""
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
    """A condition: the program answers on its socket."""

    def __init__(self, program: AppClient) -> None:
        self._program = program

    async def __call__(self) -> bool:
        try:
            await self._program.status()
        except (aiohttp.ClientError, OSError):
            return False
        return True
