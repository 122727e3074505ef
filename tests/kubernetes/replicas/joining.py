"""A machine that joins a mesh of several servers by a token."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import grpc

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from tests.feature.identity.grpc_machine import Machine, join
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.observers import Observer, running
from tests.kubernetes.replicas.servers import Replica
from tests.tools.deadline import until


@dataclass
class Joining:
    """A machine with a token that has one use, and, once it has joined, its certificate in `folder`.

    It always asks with the same key, like an agent: each use of a token belongs to a key, and a server may
    have certified it although the answer is that the store is unavailable.
    """

    name: ProxyName
    token: str
    folder: Path
    machine: Machine = field(default_factory=Machine)

    @classmethod
    async def prepared(cls, mesh: Mesh) -> Self:
        """Create the token at the first server."""
        name = ProxyName.parse("newcomer.newcomer.shop")
        folder = mesh.manifests.parent / "newcomer"
        folder.mkdir()
        (folder / "ca.pem").write_bytes((mesh.observers[0].folder / "ca.pem").read_bytes())
        return cls(name, await mesh.replicas[0].token(name, folder / "token"), folder)

    @property
    def has_joined(self) -> bool:
        """Return whether the machine has a certificate."""
        return (self.folder / f"{self.name}.pem").exists()

    async def ask(self, replica: Replica) -> tuple[grpc.StatusCode, str]:
        """Join at a server; return the status and its message."""
        roots = (self.folder / "ca.pem").read_bytes()
        target = SimpleNamespace(
            authority=SimpleNamespace(trust_bundle=lambda: roots),
            bound=SimpleNamespace(enrolment={"enrolment": HostPort.parse(replica.joining)}),
        )
        answered = await join(target, self.machine, self.token)
        if answered.code is grpc.StatusCode.OK:
            (self.folder / f"{self.name}.pem").write_bytes(answered.certificate.chain_pem)
            (self.folder / f"{self.name}.key").write_bytes(self.machine.pem)
        return answered.code, f"{answered.words} {answered.reason}".strip()

    async def until_joined(self, replica: Replica) -> None:
        """Join at a server, again while the server is not available, as an agent does."""

        async def has_joined() -> bool:
            code, text = await self.ask(replica)
            assert code in (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE), (code, text)
            return code is grpc.StatusCode.OK

        await until(has_joined)

    async def is_let_in(self, replica: Replica) -> bool:
        """Return whether a server serves the machine with its certificate, or refuses it."""
        observer = Observer(str(self.name), self.folder, (replica.ads,))
        with running([observer]):
            await until(lambda: observer.is_served or observer.is_refused_by({replica.ads}))
            return observer.is_served
