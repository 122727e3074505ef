"""All cases in one running mesh: one push, and the calls of several cases at a time."""

import asyncio
import contextlib
import ssl
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import yaml

from catalog.store.view import MeshSettings, View
from meshwright.providers.directory.manifests import Manifests
from tests.gateway import echo
from tests.gateway.case_files import Call, Case, Stage
from tests.gateway.client import Client, Outcome
from tests.gateway.echo import Journal
from tests.gateway.judgement import differences, enough_copies
from tests.gateway.topology import WORKLOADS, Topology
from tests.golden.running_mesh import TRUST_DOMAIN, LiveMesh
from tests.tools.deadline import until
from tests.unit.certs.issuers.example_cas import ca

_AT_ONCE: Final = 8
_DRAIN_SECONDS: Final = 10
_COPY_SECONDS: Final = 2
"""How long to wait for copies of requests that were answered already."""


@dataclass
class RunningCases:
    """A mesh with all cases, and the outcomes of their calls."""

    live: LiveMesh
    journal: Journal
    topology: Topology
    cases: tuple[Case, ...]
    outcomes: dict[str, list[tuple[Call, Outcome]]] = field(default_factory=dict)

    @classmethod
    async def start(cls, state: Path, cases: tuple[Case, ...], ends: AsyncExitStack) -> Self:
        """Start backends, control plane and Envoys with the objects of all cases."""
        journal, tls = Journal(), server_tls(state)
        for workload in WORKLOADS.values():
            if workload.serves and (workload.runs or not workload.has_sidecar):
                await echo.start(workload.name, workload.application, journal, tls, ends)
        topology = Topology.of_cases(cases)
        live = await LiveMesh.start(state, yaml.safe_dump_all(topology.documents()), ends)
        live.publish(view_of(read_first(topology, cases)))
        running = [item.name for item in WORKLOADS.values() if item.runs]
        await asyncio.gather(*(live.envoy(name, drain_seconds=_DRAIN_SECONDS) for name in running))
        await live.in_force()
        return cls(live, journal, topology, cases)

    async def run(self, ends: AsyncExitStack) -> None:
        """Make all calls, then all edits, and the calls after them."""
        client = Client(ends)
        await self._calls(client, [(case, case.first) for case in self.cases])
        before = read_first(self.topology, self.cases)
        self.live.publish(view_of(read_edited(before, self.cases)))
        await self.live.in_force()
        edited = [(case, case.edited) for case in self.cases if case.edited is not None]
        await self._calls(client, edited)
        await self._copied()

    async def _calls(self, client: Client, stages: list[tuple[Case, Stage]]) -> None:
        turn = asyncio.Semaphore(_AT_ONCE)

        async def run(case: Case, stage: Stage) -> None:
            async with turn:
                outcomes = self.outcomes.setdefault(str(case), [])
                for call in stage.calls:
                    outcome = await client.outcome(call, self.topology.place(call), f"{case}/{len(outcomes)}")
                    outcomes.append((call, outcome))

        await asyncio.gather(*(run(case, stage) for case, stage in stages))

    async def _copied(self) -> None:
        """Wait until all copies have arrived that must; the comparison names the missing ones."""
        calls = [item for outcomes in self.outcomes.values() for item in outcomes]

        def arrived() -> bool:
            return all(enough_copies(call, self.journal.of(outcome.tag)) for call, outcome in calls)

        with contextlib.suppress(AssertionError):
            await until(arrived, _COPY_SECONDS)

    def failures(self, case: Case) -> list[str]:
        """Return the differences of all calls of a case, one line for each."""
        return [
            f"{call}: {difference}"
            for call, outcome in self.outcomes.get(str(case), [])
            for difference in differences(call, outcome, self.journal.of(outcome.tag))
        ]


def read_first(topology: Topology, cases: tuple[Case, ...]) -> Manifests:
    """Read the shared objects and those of the cases, each case from a file of its own."""
    shared = yaml.safe_dump_all(topology.documents())
    return Manifests().apply_all({"mesh.yaml": shared, **_files((case, case.first) for case in cases)})


def read_edited(before: Manifests, cases: tuple[Case, ...]) -> Manifests:
    """Read the files of the cases with an edit again, as a server does that has read them before."""
    edited = ((case, case.edited) for case in cases if case.edited is not None)
    return before.apply_all(_files(edited))


def view_of(read: Manifests) -> View:
    """Return the view of what was read."""
    return View.build(read.objects(), MeshSettings(trust_domain=TRUST_DOMAIN))


def _files(stages: Iterable[tuple[Case, Stage]]) -> Mapping[str, str]:
    return {f"{case.topic}-{case.name}.yaml": yaml.safe_dump_all(stage.documents) for case, stage in stages}


def server_tls(state: Path) -> ssl.SSLContext:
    """Return the TLS of backends, with a new certificate in a file of `state`."""
    made = ca("backend", datetime.now(UTC), is_ca=False)
    file = state / "backend.pem"
    file.write_bytes(made.pem + made.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
