"""Agents of real Envoys that follow a root rotation: they renew the files that the Envoys read again."""

import asyncio
import contextlib
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Final

from certs.keys.material import PrivateKey
from certs.keys.pair import matched_pair
from certs.peer import read_peer
from meshwright.agent.credentials import CredentialFacts, Credentials
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import BootstrapSettings, sds_files
from tests.feature.identity.root_follower import RootAgent
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.servers import alive

DOMAIN: Final = TrustDomain("cluster.local")
PAUSE_SECONDS: Final = 2.0
"""Seconds between two reports of an agent, which go on for minutes."""


@dataclass
class LivingServer:
    """The servers that an agent knows: it asks any one that runs."""

    mesh: Mesh

    @property
    def bound(self) -> SimpleNamespace:
        """Return the address for renewals."""
        asked = random.choice(alive(self.mesh.replicas) or self.mesh.replicas)  # noqa: S311 - no secret
        return SimpleNamespace(enrolment={"renewal": HostPort.parse(asked.renewal)})


@dataclass
class FileAgent(RootAgent):
    """An agent that replaces the files of its Envoy by one rename."""

    directory: RuntimeDirectory = field(kw_only=True)

    def changed(self) -> None:
        """Write the present certificate and roots, unless they are there."""
        peer = read_peer(self.pair.chain_pem)
        facts = CredentialFacts(ProxyName.parse(self.name), DOMAIN, peer)
        credentials = Credentials(facts, self.pair.chain_pem, self.pair.key, self.roots)
        if not (self.directory.certificates / credentials.digest).exists():
            self.directory.put_credentials(credentials)


def with_agent(mesh: Mesh, settings: BootstrapSettings, ends: AsyncExitStack) -> BootstrapSettings:
    """Give an Envoy files that an agent renews until the end of the exit stack."""
    directory = RuntimeDirectory(settings.certificate_file.parent)
    key = PrivateKey(settings.key_file.read_bytes())
    pair = matched_pair(settings.certificate_file.read_bytes(), key)
    roots = settings.ca_file.read_bytes()
    server, name = LivingServer(mesh), str(settings.proxy_name)
    agent = FileAgent(server, name, pair, roots, pause=PAUSE_SECONDS, directory=directory)
    directory.prepare()
    agent.changed()
    made = directory.settings(settings)
    for name, content in sds_files(made, directory.certificates).items():
        (directory.root / name).write_text(content)
    task = asyncio.create_task(agent.follow(), name=f"agent of {agent.name}")
    ends.push_async_callback(_end, task)
    return made


async def _end(task: "asyncio.Task[None]") -> None:
    assert not task.done(), task
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
