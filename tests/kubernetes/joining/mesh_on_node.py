"""A mesh whose objects are in a cluster with a real node: `meshwright serve`, Pods and machines.

Machines are network namespaces in the node's network, with traffic redirected as in a Pod. An object of the
cluster, or of a directory, gives each its address. The server is at an address that Pods can reach.
"""

import asyncio
import socket
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import BootstrapSettings, bootstrap
from tests.e2e.agent.machines import APPLICATION_UID, Machine, cable, machine
from tests.e2e.policy import applications, calls, pods
from tests.e2e.policy.calls import Answer
from tests.golden.envoys import Place, RunningEnvoy, keep
from tests.kubernetes.tools import containers
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools import envoy
from tests.tools.deadline import until
from tests.tools.program import Program, Server
from tools.real_parts.flags import NODE_ADDRESS
from tools.real_parts.images.environments import HOME
from tools.real_parts.node import Node

_REJECTED: Final = "/stats?filter=update_rejected"


@dataclass
class Meshed:
    """The server, and the Pods and machines that have joined."""

    node: Node
    kubectl: Kubectl
    program: Program
    server: Server
    ends: AsyncExitStack
    machines: dict[str, Machine] = field(default_factory=dict)
    envoys: dict[str, RunningEnvoy] = field(default_factory=dict)
    pods: list[str] = field(default_factory=list)

    @classmethod
    async def start(
        cls, node: Node, kubectl: Kubectl, program: Program, ends: AsyncExitStack, *flags: str
    ) -> "Meshed":
        """Start the server on the program's sources."""
        server = await asyncio.to_thread(program.serve, f"--ads-address={NODE_ADDRESS}:0", *flags)
        return cls(node, kubectl, program, server, ends)

    @property
    def ads(self) -> str:
        """Return the server's address for sidecars."""
        return str(self.server.bound["ads"])

    async def run(self, *names: ProxyName) -> None:
        """Run Pods with sidecars on the node, each behind its Service; wait until they are ready."""
        await asyncio.gather(*(asyncio.to_thread(self._run, name) for name in names))

    def _run(self, who: ProxyName) -> None:
        name, folder = str(who.uuid), self.program.files / str(who.uuid)
        if name not in self.pods:
            self._issue(who, folder)
            self.kubectl.apply(containers.secret(name, folder))
            self.pods.append(name)
        self.kubectl.apply(containers.meshed(name, str(who.service), self.ads))
        self.kubectl.until_pod(name)
        uid = self.kubectl.get("pod", name)["metadata"]["uid"]
        self.machines[name] = Machine(self.node.processes(uid)[0])

    async def join(self, who: ProxyName, address: str) -> None:
        """Start a machine: its Envoy, its interception rules, and an application."""
        name, made = str(who.uuid), self.ends.enter_context(machine())
        self.machines[name] = made
        cable(Machine(self.node.inside.pid), address, made)
        await pods.intercept(made)
        await applications.start(name, partial(pods.bound, made, ""), self.ends)
        folder = self.program.files / name
        await asyncio.to_thread(self._issue, who, folder)
        host, _, port = self.ads.rpartition(":")
        settings = BootstrapSettings(
            proxy_name=who,
            trust_domain=TrustDomain("cluster.local"),
            ads=(HostPort(host, int(port)),),
            certificate_file=folder / "proxy.pem",
            key_file=folder / "proxy.key",
            ca_file=folder / "ca.pem",
            admin=HostPort("127.0.0.1", 0),
        )
        (folder / "bootstrap.json").write_text(bootstrap(settings))
        place = pods.place(made, self.program.files)
        session = await self.ends.enter_async_context(place.session())
        running = RunningEnvoy(folder, "", session)
        result = envoy.program()
        assert result is not None
        await keep(result, running, place, 45, self.ends)
        self.envoys[name] = running
        await until(lambda: self._is_live(running))

    async def get(self, caller: str, address: str, path: str = "/") -> Answer:
        """Send a request of an application to an address, on a new connection."""
        opened = partial(self.machines[caller].socket, socket.AF_INET, APPLICATION_UID)
        async with Place(open_socket=opened).session() as session:
            return await calls.request(f"http://{address}{path}", session=session)

    async def answering(self, caller: str, address: str, count: int) -> Counter[str]:
        """Return the answering servers of `count` requests; a refusal is counted under its status."""
        answers = [await self.get(caller, address) for _ in range(count)]
        return Counter(answer.by or str(answer.status) for answer in answers)

    async def rejected(self) -> dict[str, str]:
        """Return each Envoy's statistics of rejected updates."""
        result = {name: await running_envoy.text(_REJECTED) for name, running_envoy in self.envoys.items()}
        asked = (f"{HOME}/bin/meshwright", "agent", "request", "--run=/tmp/agent", "GET", _REJECTED)
        for name in self.pods:
            words = ("exec", name, "-c", "sidecar", "--", *asked)
            result[name] = await asyncio.to_thread(self.kubectl, *words)
        return result

    def _issue(self, name: ProxyName, folder: Path) -> None:
        status, _, complaint = self.program.run(
            *("certs", "issue-proxy", "--state", str(self.program.state), "--uuid", str(name.uuid)),
            *("--service", str(name.service), "--namespace", str(name.namespace)),
            *("--out", str(folder), "--anyway"),
        )
        assert status == 0, complaint

    async def _is_live(self, running: RunningEnvoy) -> bool:
        return await running.live_epoch() == 0
