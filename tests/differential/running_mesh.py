"""The running differential mesh: Envoys are kept, and the policy changes."""

import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from catalog.oracle.decide import Request
from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import groups
from catalog.store.edits import Edits
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.callers import Outsider
from meshwright.providers.directory.manifests import Manifests
from tests.differential.servers import Journal, greeter, web
from tests.differential.topology import (
    GRPC,
    HTTP_A,
    HTTP_B,
    TCP,
    TLS,
    WORKLOADS,
    Document,
    Runs,
    documents,
    local_port,
)
from tests.differential.wire import Answered, exchange
from tests.gateway.running_cases import server_tls
from tests.golden.running_mesh import LiveMesh, Translate, serve
from tests.meshes import texts
from tests.tools.observed_values import Pin


class DifferentialMesh:
    """The topology with its Envoys; `apply` changes the policy and returns when all of them enforce it."""

    def __init__(self, live: LiveMesh, base: Manifests) -> None:
        self._live = live
        self._base = base
        self._contexts: dict[ServiceIdentity, ssl.SSLContext] = {}
        self.view = live.view
        self.journal = Journal()
        # Kept, so that a policy is computed from the one before it; the topology, and so the groups, stay.
        self._kept = [Pin(proxy_policy, live.view, key) for key in groups(live.view)]

    @classmethod
    async def start(cls, state: Path, ends: AsyncExitStack) -> Self:
        """Start the control plane, the applications and the Envoys."""
        topology = texts.written(documents())
        live = await LiveMesh.start(state, topology, ends)
        base = Manifests().apply("a-topology.yaml", topology)
        mesh = cls(live, base)
        tls = server_tls(state)
        for runs in WORKLOADS:
            if runs.labels:
                for port in (HTTP_A, HTTP_B, GRPC):
                    await serve(ends, runs.application, port, web(runs.account, mesh.journal))
                await serve(ends, runs.application, TCP, greeter(runs.account))
                await serve(ends, runs.application, TLS, greeter(runs.account), tls)
        for runs in WORKLOADS:
            await live.envoy(runs.uuid)
        mesh._contexts = {
            workload.identity: live.client(workload.namespace, workload.account) for workload in WORKLOADS
        }
        await live.in_force()
        return mesh

    async def apply(self, policy: tuple[Document, ...]) -> View:
        """Enforce a policy everywhere, and return its view."""
        manifests = self._base.apply("policy.yaml", texts.written(policy))
        self.view.apply(self.view.edits_to(Edits(manifests.objects())))
        self._live.publish(self.view)
        await self._live.in_force()
        return self.view

    @property
    def translate(self) -> Translate:
        """The translation of policies to resources; tests may set a wrong one."""
        return self._live.translate

    @translate.setter
    def translate(self, made: Translate) -> None:
        self._live.translate = made

    async def send(self, asked: Request) -> Answered:
        """Send a request from its client's application through both sidecars."""
        runs = next(workload for workload in WORKLOADS if workload.identity == asked.client)
        port = local_port(asked.service, asked.port)
        return await exchange(runs.address, port, asked, None)

    async def send_directly(self, asked: Request, server: Runs, port: int) -> Answered:
        """Send a request directly to a server's sidecar with the client's certificate."""
        assert asked.identity is not None
        return await exchange(server.address, port, asked, self._contexts[asked.identity])

    async def send_plain(self, asked: Request, server: Runs, port: int) -> Answered:
        """Send a request to a server's sidecar in plain text, from the client's address."""
        assert isinstance(asked.client, Outsider)
        return await exchange(server.address, port, asked, None, asked.client.address)

    async def complaints(self) -> str:
        """Return the Envoys' log lines and rejections."""
        return await self._live.complaints()
