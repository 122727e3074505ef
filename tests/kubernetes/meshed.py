"""A mesh whose objects are in the cluster: `meshwright serve` on it, and machines with real Envoys.

Machines are network namespaces on a switch, their traffic redirected as in a Pod; each has an address that an
object of the cluster (or of a directory) gives it. The server runs here, on loopback, where the API is too.
"""

import asyncio
import socket
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from mesh.identity import ProxyName
from mesh.names import TrustDomain
from sidecars.envoy.bootstrap import BootstrapSettings, bootstrap
from tests import envoy
from tests.e2e.agent.machines import APPLICATION_UID, Machine, cable, join, machine
from tests.e2e.policy import applications, calls, pods
from tests.e2e.policy.calls import Answer
from tests.golden.envoys import Place, RunningEnvoy, keep
from tests.golden.live import until
from tests.program import Program, Server

SWITCH: Final = "10.77.1.250"


@dataclass(frozen=True, slots=True)
class Joined:
    """A machine of the mesh: whose sidecar it has, and where."""

    name: ProxyName
    address: str


@dataclass
class Meshed:
    """The server, and the machines that have joined."""

    program: Program
    server: Server
    ends: AsyncExitStack
    switch: Machine
    machines: dict[str, Machine] = field(default_factory=dict)
    envoys: dict[str, RunningEnvoy] = field(default_factory=dict)

    @classmethod
    async def start(cls, program: Program, ends: AsyncExitStack, *flags: str) -> "Meshed":
        """Start the server on the program's sources."""
        switch = ends.enter_context(machine())
        join(switch, SWITCH, {})
        server = await asyncio.to_thread(program.serve, *flags)
        return cls(program, server, ends, switch)

    async def add(self, who: Joined, *, serves: bool) -> None:
        """Let a machine join: its Envoy, its redirection, and an application if it serves."""
        name, made = str(who.name.uuid), self.ends.enter_context(machine())
        self.machines[name] = made
        cable(self.switch, who.address, made)
        await pods.intercept(made)
        port = int(str(self.server.bound["ads"]).rpartition(":")[2])
        await pods.lead_to(port, made, self.ends)
        if serves:
            await applications.start(name, partial(pods.bound, made, ""), self.ends)
        folder = self.program.files / name
        await asyncio.to_thread(self._issue, who.name, folder)
        settings = BootstrapSettings(
            proxy_name=who.name,
            trust_domain=TrustDomain("cluster.local"),
            ads_host="127.0.0.1",
            ads_port=port,
            certificate_file=folder / "proxy.pem",
            key_file=folder / "proxy.key",
            ca_file=folder / "ca.pem",
            admin_port=0,
        )
        (folder / "bootstrap.json").write_text(bootstrap(settings))
        place = pods.place(made, self.program.files)
        session = await self.ends.enter_async_context(place.session())
        running = RunningEnvoy(folder, "", session)
        found = envoy.program()
        assert found is not None
        await keep(found, running, place, 45, self.ends)
        self.envoys[name] = running
        await until(lambda: self._is_live(running))

    async def get(self, caller: str, address: str, path: str = "/") -> Answer:
        """Have a machine's application send a request to an address, on a connection of its own."""
        opened = partial(self.machines[caller].socket, socket.AF_INET, APPLICATION_UID)
        async with Place(open_socket=opened).session() as session:
            return await calls.request(f"http://{address}{path}", session=session)

    async def answering(self, caller: str, address: str, count: int) -> Counter[str]:
        """Return who answers so many requests; a refusal counts under its status."""
        found = [await self.get(caller, address) for _ in range(count)]
        return Counter(each.by or str(each.status) for each in found)

    def _issue(self, name: ProxyName, folder: Path) -> None:
        status, _, complaint = self.program.run(
            *("certs", "issue-proxy", "--state", str(self.program.state), "--uuid", str(name.uuid)),
            *("--service", str(name.service), "--namespace", str(name.namespace)),
            *("--out", str(folder), "--anyway"),
        )
        assert status == 0, complaint

    async def _is_live(self, running: RunningEnvoy) -> bool:
        return await running.live_epoch() == 0
