"""Pods without Kubernetes: network namespaces on one switch, with traffic redirected as in a pod.

Only Envoy is a separate process, because a socket belongs to the namespace of the thread that made it. Each
pod reaches the control plane through a socket that leads to this process.
"""

import asyncio
import contextlib
import socket
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from catalog.policy.inbound import LOOPBACK
from catalog.relations.hosts import hosts
from demo.plane import COMMAND
from demo.transparent import as_user
from meshwright.mesh.names import Namespace
from tests.e2e.agent.machines import APPLICATION_UID, Machine, join, machine
from tests.e2e.policy import applications, calls
from tests.e2e.policy.applications import DATABASE, GREETER, HTTP
from tests.e2e.policy.calls import Answer
from tests.e2e.policy.policies import Document
from tests.golden.envoys import Place
from tests.golden.running_mesh import LiveMesh
from tests.meshes import texts
from tests.tools import envoy

PROXY_UID = 1500
NODES = ("node-0", "node-1", "node-2")
"""The pods of a StatefulSet; the last has a ServiceAccount of its own."""
ADDRESSES = {"client": "10.77.0.1", **{name: f"10.77.0.{number}" for number, name in enumerate(NODES, 2)}}
OUTSIDE = "10.77.0.250"
"""A server that has nothing to do with the mesh."""
API, DB = "10.96.0.1", "10.96.0.2"


def documents() -> list[Document]:
    """Return the manifests: `nodes` is headless, `api` and `db` have a cluster IP."""
    peers = {"port": GREETER, "name": "peer", "appProtocol": "tcp-server-first"}
    return [
        _service("nodes", "None", {"port": 80, "targetPort": "web", "name": "http-web"}, peers),
        _service("api", API, {"port": 80, "targetPort": HTTP, "name": "http-web"}),
        _service("db", DB, {"port": DATABASE, "name": "db"}),
        _apex(),
        _pod("client", "client"),
        *(_pod(name, "rogue" if name == NODES[-1] else "node", node="yes") for name in NODES),
    ]


def _service(name: str, address: str, *ports: Document) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"clusterIP": address, "selector": {"node": "yes"}, "ports": list(ports)},
    }


def _apex() -> Document:
    """Return a Service without workloads and without a cluster IP."""
    made = _service("apex", "", {"port": 80, "name": "http-web"}, {"port": DATABASE, "name": "db"})
    return {**made, "spec": {"ports": made["spec"]["ports"]}}


def _pod(name: str, account: str, **labels: str) -> Document:
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {
            "address": ADDRESSES[name],
            "serviceAccount": account,
            "uuid": name,
            "ports": [{"port": HTTP, "name": "web"}] if labels else [],
        },
    }


@dataclass
class Pods:
    """The pods with their Envoys, and calls from them."""

    live: LiveMesh
    machines: dict[str, Machine]

    @classmethod
    async def start(cls, state: Path, ends: AsyncExitStack) -> Self:
        """Make the namespaces with their rules, the applications and the Envoys."""
        machines = {name: ends.enter_context(machine()) for name in ("switch", *ADDRESSES)}
        join(machines["switch"], OUTSIDE, {at: machines[name] for name, at in ADDRESSES.items()})
        live = await LiveMesh.start(state, texts.written(documents()), ends)
        live.loopback = LOOPBACK
        await asyncio.gather(*(intercept(machines[name]) for name in ADDRESSES))
        await applications.start("outside", partial(bound, machines["switch"], ""), ends)
        for name in ADDRESSES:
            await lead_to(live.ads_port, machines[name], ends)
            if name in NODES:
                await applications.start(name, partial(bound, machines[name], ""), ends)
            await live.envoy(name, place=place(machines[name], state))
        return cls(live, machines)

    async def enforce(self, *policy: Document) -> None:
        """Enforce exactly this policy everywhere."""
        self.live.apply(texts.written([*documents(), *policy]))
        await self.live.in_force()

    def resolve(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a name in the mesh's hosts lines."""
        result = hosts(self.live.view, Namespace("shop"))
        return tuple(address for address, names in result if name in names)

    async def get(
        self, caller: str, address: str, port: int = 80, path: str = "/", host: str = "", method: str = "GET"
    ) -> Answer:
        """Send a request of a pod's application to an address, with another host header if given."""
        place = Place(open_socket=partial(self.machines[caller].socket, socket.AF_INET, APPLICATION_UID))
        headers = {"host": host} if host else None
        async with place.session() as session:
            return await calls.request(f"http://{address}:{port}{path}", method, headers, session)

    async def hello(
        self,
        caller: str,
        address: str,
        port: int,
        *,
        first: bool = False,
        tls: ssl.SSLContext | None = None,
        name: str | None = None,
    ) -> str:
        """Connect a pod's application to an address and send a line, over TLS with a server name if given."""
        with self.machines[caller].socket(socket.AF_INET, APPLICATION_UID) as at:
            at.setblocking(False)
            return await calls.exchange(address, port, first=first, at=at, tls=tls, name=name)


async def intercept(pod: Machine) -> None:
    """Redirect a pod's traffic to its sidecar, except the sidecar's own traffic."""
    await asyncio.to_thread(pod.run, str(COMMAND), "intercept")


def place(pod: Machine, state: Path) -> Place:
    """Return the place of a pod's Envoy: a separate user that may read the state's folder."""
    program = envoy.program()
    assert program is not None
    user = as_user(PROXY_UID, [], [Path(program), state])
    return Place((*pod.enter, *user), partial(pod.socket, socket.AF_INET, PROXY_UID), PROXY_UID)


def bound(at: Machine, address: str, port: int) -> socket.socket:
    """Return a socket of a pod's application, bound to a port."""
    made = at.socket(socket.AF_INET, APPLICATION_UID)
    made.settimeout(None)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    return made


async def lead_to(port: int, pod: Machine, ends: AsyncExitStack) -> None:
    """Forward connections to a port of the pod's loopback to that port of this process."""

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        directions = (_pass_on(reader, back), _pass_on(there, writer))
        await asyncio.wait(map(asyncio.create_task, directions), return_when=asyncio.FIRST_COMPLETED)
        back.close()
        writer.close()

    server = await asyncio.start_server(lead, sock=bound(pod, "127.0.0.1", port))
    ends.callback(server.close)


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
