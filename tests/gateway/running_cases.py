"""All cases in one running mesh: one push, and the calls of several cases at a time."""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import yaml

from catalog.store.view import MeshSettings, View
from meshwright.providers.directory.manifests import Manifests
from tests.gateway import echo
from tests.gateway.case_files import Call, Case
from tests.gateway.client import Client, Outcome
from tests.gateway.echo import Journal
from tests.gateway.judgement import differences, enough_copies
from tests.gateway.topology import WORKLOADS, Topology
from tests.golden.running_mesh import TRUST_DOMAIN, LiveMesh
from tests.tools.deadline import until
from tests.unit.certs.issuers.example_cas import ca

_AT_ONCE: Final = 8
_DRAIN_SECONDS: Final = 10


@dataclass
class RunningCases:
    """A mesh with all cases, and the outcomes of their calls."""

    live: LiveMesh
    journal: Journal
    topology: Topology
    outcomes: dict[str, list[tuple[Call, Outcome]]] = field(default_factory=dict)

    @classmethod
    async def start(cls, state: Path, cases: tuple[Case, ...], ends: AsyncExitStack) -> Self:
        """Start backends, control plane and Envoys with the objects of all cases."""
        journal, tls = Journal(), _server_tls(state)
        for workload in WORKLOADS.values():
            if workload.serves and workload.runs:
                await echo.start(workload.name, workload.application, journal, tls, ends)
        topology = Topology.of(call for case in cases for call in case.calls)
        mesh = cls(
            await LiveMesh.start(state, yaml.safe_dump_all(topology.documents()), ends), journal, topology
        )
        mesh.live.publish(read_cases(topology, cases).view)
        running = [item.name for item in WORKLOADS.values() if item.runs]
        await asyncio.gather(*(mesh.live.envoy(name, drain_seconds=_DRAIN_SECONDS) for name in running))
        await mesh.live.in_force()
        return mesh

    async def run(self, cases: tuple[Case, ...], ends: AsyncExitStack) -> None:
        """Make all calls, and wait for the copies that must still arrive."""
        client, turn = Client(ends), asyncio.Semaphore(_AT_ONCE)

        async def run(case: Case) -> None:
            async with turn:
                for number, call in enumerate(case.calls):
                    outcome = await client.outcome(call, self.topology.place(call), f"{case}/{number}")
                    self.outcomes.setdefault(str(case), []).append((call, outcome))

        await asyncio.gather(*map(run, cases))

    async def failures(self, case: Case) -> list[str]:
        """Return the differences of all calls of a case, one line for each."""
        result = []
        for call, outcome in self.outcomes.get(str(case), []):
            if "copies" in call.expected:
                await self._copied(call, outcome)
            seen = differences(call, outcome, self.journal.of(outcome.tag))
            result += [f"{call}: {difference}" for difference in seen]
        return result

    async def _copied(self, call: Call, outcome: Outcome) -> None:
        try:
            await until(lambda: enough_copies(call, self.journal.of(outcome.tag)), seconds=2)
        except AssertionError:
            return  # the comparison names what is missing


@dataclass(frozen=True)
class ReadCases:
    """The objects of cases as a view, and the problems of their readers as text."""

    view: View
    problems: tuple[str, ...]


def read_cases(topology: Topology, cases: tuple[Case, ...]) -> ReadCases:
    """Read the shared objects and those of the cases, each case from a file of its own."""
    contents: Mapping[str, str] = {
        "mesh.yaml": yaml.safe_dump_all(topology.documents()),
        **{f"{case.topic}-{case.name}.yaml": yaml.safe_dump_all(case.documents) for case in cases},
    }
    read = Manifests().apply_all(contents)
    view = View.build(read.objects(), MeshSettings(trust_domain=TRUST_DOMAIN))
    return ReadCases(view, tuple(map(str, read.problems())))


def _server_tls(state: Path) -> ssl.SSLContext:
    made = ca("backend", datetime.now(UTC), is_ca=False)
    file = state / "backend.pem"
    file.write_bytes(made.pem + made.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
