"""The running mesh of these tests: Envoys are kept, and the policy changes."""

import socket
import ssl
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import aiohttp

from tests.e2e.policy import applications, calls
from tests.e2e.policy.calls import Answer
from tests.e2e.policy.policies import Document
from tests.e2e.policy.topology import WORKLOADS, documents, local_port
from tests.golden.running_mesh import LiveMesh
from tests.meshes import texts
from tests.tools.deadline import until


@dataclass
class PolicyMesh:
    """The workloads of the topology with their Envoys, and calls between them."""

    live: LiveMesh

    @classmethod
    async def start(cls, state: Path, ends: AsyncExitStack) -> Self:
        """Start applications, control plane and Envoys."""
        for workload in WORKLOADS.values():
            if workload.labels:
                address = workload.application
                await applications.start(workload.name, partial(bound, address), ends)
                await applications.start_grpc(workload.name, address, ends)
        mesh = cls(await LiveMesh.start(state, texts.written(documents()), ends))
        for name in WORKLOADS:
            await mesh.live.envoy(name)
        await mesh.live.in_force()
        return mesh

    async def enforce(self, *policy: Document, said: tuple[str, ...] = ()) -> None:
        """Enforce exactly this policy everywhere; the reader must report these codes.

        A Service or Workload in it replaces the topology's own of that name.
        """
        named = {(item["kind"], item["metadata"]["name"]) for item in policy}
        kept = [
            document
            for document in documents()
            if (document["kind"], document["metadata"]["name"]) not in named
        ]
        self.live.apply(texts.written([*kept, *policy]), said)
        await self.live.in_force()

    async def disconnected(self) -> None:
        """Enforce no policy, and wait until no Envoy has a connection any more.

        A proxy that may call nothing closes its connections, also those on an earlier filter chain.
        """
        await self.enforce()

        async def has_none(name: str) -> bool:
            return not await self.live.stat(name, r"^listener\.[0-9].*\.downstream_cx_active$")

        for name in WORKLOADS:
            await until(partial(has_none, name))

    async def get(
        self,
        caller: str,
        service: str,
        path: str = "/",
        port: int = 80,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        session: aiohttp.ClientSession | None = None,
    ) -> Answer:
        """Send a request of a workload's application to a service."""
        return await calls.request(self.url(caller, service, port) + path, method, headers, session)

    async def hello(self, caller: str, service: str, port: int, *, first: bool = False) -> str:
        """Connect a workload's application to a service and send a line."""
        return await calls.exchange(*self.place(caller, service, port), first=first)

    async def answering(self, caller: str, service: str, count: int, path: str = "/") -> Counter[str]:
        """Return the answering servers of `count` requests; a refusal is counted under its status."""
        answers = [await self.get(caller, service, path) for _ in range(count)]
        return Counter(answer.by or str(answer.status) for answer in answers)

    def url(self, caller: str, service: str, port: int = 80) -> str:
        """Return the URL at which a caller's sidecar offers an HTTP port of a service."""
        return "http://{}:{}".format(*self.place(caller, service, port))

    def place(self, caller: str, service: str, port: int) -> tuple[str, int]:
        """Return the address and port at which a caller's sidecar offers a service's port."""
        return WORKLOADS[caller].address, local_port(service, port)

    def certificate(self, workload: str) -> ssl.SSLContext:
        """Return a TLS client with a workload's service certificate, for calls that bypass its sidecar."""
        return self.live.client(WORKLOADS[workload].namespace, WORKLOADS[workload].account)

    def stranger(self) -> ssl.SSLContext:
        """Return a TLS client that trusts the mesh's certificates and has none."""
        context = ssl.create_default_context(cadata=self.live.authority.trust_bundle().decode())
        context.check_hostname = False
        return context


def bound(address: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address of this machine."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    return made
