"""Tests of servers, agents and commands of two releases that work together during an upgrade.

Servers and agents are real processes, with real Envoys. Two applications call each other through them.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.agent.scenes import APPLICATION, MESH, NET, PORT, Agent, answer, answered, end, get
from tests.golden.running_mesh import serve
from tests.tools.deadline import until, wait_until
from tests.tools.envoy import program as envoy_program
from tests.tools.forked_cli import Commands, Typed
from tests.tools.program import SECONDS, Program, Server
from tools.ports import free_port

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(600)]

NOW = Path(os.environ["MESHWRIGHT_COMMAND"])
"""The command of this clone."""
ALICE, SHOP = "alice-uuid.alice.default", "shop-uuid.shop.default"
READ = (
    (("proxies",), "alice-uuid  default/alice  connected"),
    (("proxy", "show", SHOP), SHOP),
    (("sources",), "directory"),
    (("certs", "list"), "alice-uuid"),
    (("certs", "token", "list"), "alice-uuid"),
    (("explain", "--from", "default/alice", "--to", "default/shop:80", "GET", "/"), ": allowed"),
    (("hosts", "--namespace", "default"), "shop.default"),
    (("stat", "services"), "default/shop"),
    (("log-level",), "info"),
    (("check",), "in step"),
)
"""The main commands that ask a running server, and a part of the output.

They do not print JSON, because with `--json` a command may print a server's answer without reading it.
"""


class Fleet:
    """A server and two agents, each of which can be stopped and started again as another release."""

    def __init__(self, program: Program, envoy: str, ends: AsyncExitStack) -> None:
        self.program, self._envoy, self._ends = program, envoy, ends
        names = ("ads", "http", "debug", "enrolment", "renewal")
        self._at = {name: f"{NET}.10:{free_port(f'{NET}.10')}" for name in names}
        self._agents: dict[str, Agent] = {}
        self._server: Server | None = None
        self.allow()

    def allow(self, *, allowed: bool = True) -> None:
        """Let alice call the shop, or deny it."""
        mesh, _, policy = MESH.rpartition("---\n")
        (draft := self.program.mesh / ".draft").write_text(MESH if allowed else mesh)
        assert "TrafficTarget" in policy
        draft.replace(self.program.mesh / "mesh.yaml")

    def serve(self, commands: Commands) -> None:
        """Stop the server, if one runs, and start that of a release on the same state directory."""
        if self._server is not None:
            self._server.stop()
        self.program.commands = commands
        fixed = [f"--{name}-address={self._at[name]}" for name in ("ads", "http", "debug")]
        joining = [f"--set={name}_address={self._at[name]}" for name in ("enrolment", "renewal")]
        self._server = self.program.serve(*fixed, *joining)

    async def begin(self, name: str, command: Path) -> None:
        """Stop an agent, if it runs, and start that of a release in the same directories."""
        folder = self.program.files / name
        if name in self._agents:
            await end(self._agents[name])
        else:
            folder.mkdir()
            at = ("--state", str(self.program.state), "--service", name, "--namespace", "default")
            status, _, complaint = self.program.run(
                *("certs", "token", "create", *at, "--uuid", f"{name}-uuid", "--out", str(folder / "token"))
            )
            assert status == 0, complaint
        status_at = f"{NET}.9:{free_port(f'{NET}.9')}"
        words = [
            str(command),
            "agent",
            "--credentials",
            str(folder / "credentials"),
            "--ads",
            self._at["ads"],
        ]
        words += ["--enrol", self._at["enrolment"], "--join-token", str(folder / "token")]
        words += ["--renewal", self._at["renewal"], "--run", str(folder / "run"), "--envoy", self._envoy]
        words += ["--status", status_at, "--concurrency", "1", "--drain-seconds", "1"]
        words += ["--parent-shutdown-seconds", "2"]
        words += ["--termination-least-seconds", "0", "--termination-most-seconds", "1"]
        with (folder / "agent.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
        self._agents[name] = made = Agent(process, folder, status_at, get)
        self._ends.push_async_callback(end, made)
        await until(made.ready)

    async def works(self) -> None:
        """Wait until a change of policy has reached both proxies: the call is denied, then allowed."""
        for allowed in (False, True):
            self.allow(allowed=allowed)

            async def is_so(wanted: bool = allowed) -> bool:
                return await answered() is wanted

            await until(is_so)

    async def serials(self) -> dict[str, str]:
        """Return the serial of the certificate that each agent uses."""
        found = {}
        for name, agent in self._agents.items():
            _, text = await get(f"{agent.status}/healthz/status")
            found[name] = str(json.loads(text)["certificate"]["serial"])
        return found

    def _is_read(self, words: tuple[str, ...], part: str) -> None:
        last: list[tuple[int, str, str]] = []

        def is_read() -> bool:
            last.append(self.program.run(*words, "--state", str(self.program.state)))
            return last[-1][0] == 0 and part in last[-1][1]

        wait_until(is_read, SECONDS, lambda: (words, last[-1]))

    def are_read(self, commands: Commands) -> None:
        """Run all reading commands of a release against the running server until each succeeds.

        Agents report statistics every few seconds.
        """
        serving, self.program.commands = self.program.commands, commands
        for words, part in READ:
            self._is_read(words, part)
        self.program.commands = serving


@pytest.fixture
async def fleet(program: Program) -> AsyncIterator[Fleet]:
    """Programs that end with the test, and an application behind the shop's proxy."""
    async with AsyncExitStack() as ends:
        await serve(ends, APPLICATION, PORT, answer)
        yield Fleet(program, envoy_program() or "", ends)


async def test_releases_work_together_while_a_mesh_is_upgraded_and_rolled_back(
    fleet: Fleet, before: Typed, typed: Typed, release_before: Path
) -> None:
    """Each server serves agents of both releases, and answers commands of both.

    No proxy gets another certificate.
    """
    old = release_before / "bin" / "meshwright"
    fleet.serve(before)
    await fleet.begin("alice", old)
    await fleet.begin("shop", NOW)
    await fleet.works()
    fleet.are_read(typed)
    serials = await fleet.serials()

    fleet.serve(typed)
    await fleet.works()
    fleet.are_read(before)
    await fleet.begin("alice", NOW)
    await fleet.works()
    assert await fleet.serials() == serials

    fleet.serve(before)
    await fleet.begin("alice", old)
    await fleet.works()
    assert await fleet.serials() == serials
