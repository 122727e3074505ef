"""Two machines in the mesh: `meshwright serve` on a switch; agent, Envoy and rules on each machine.

All programs except the applications and their callers are processes, started as in docs/start/vm.md. Machines
are network namespaces.
"""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from demo.plane import COMMAND, ControlPlane, PlaneAddresses
from demo.transparent import as_user
from meshwright.mesh.workload import Transparent
from tests.e2e.agent.machines import APPLICATION_UID, PROXY_UID, Machine, machine
from tests.e2e.agent.scenes import Agent, end, get_from
from tests.e2e.policy import applications
from tests.e2e.policy.applications import GREETER, HTTP
from tests.golden.envoys import Place
from tests.tools.deadline import until

V4, V6 = socket.AF_INET, socket.AF_INET6
SWITCH = {V4: "10.78.0.250", V6: "fd00:78::fa"}
ADDRESSES = {
    "alice": {V4: "10.78.0.1", V6: "fd00:78::1"},
    "shop": {V4: "10.78.0.2", V6: "fd00:78::2"},
}
CALLED_AT = {V4: "10.96.0.1", V6: "fd00:96::1"}
"""The shop's services: `shop` has an IPv4 address of its own, `shop6` one of IPv6."""
Families = tuple[socket.AddressFamily, ...]
"""Those of which a machine has addresses, the first first."""
EVERY: Mapping[str, Families] = dict.fromkeys(("switch", *ADDRESSES), (V4, V6))
PLANE = PlaneAddresses(f"{SWITCH[V4]}:15128", "127.0.0.1:9091", "127.0.0.1:9092")
PLANE_IPV6 = PlaneAddresses(f"[{SWITCH[V6]}]:15128", "[::]:9091", "[::1]:9092")
JOINED, RENEWED = (f"{SWITCH[V4]}:{port}" for port in (15130, 15131))
STATUS = "127.0.0.1:15020"
POLICY = """
apiVersion: v1
kind: Service
metadata: {{name: shop, namespace: default}}
spec:
  clusterIP: {v4}
  selector: {{app: shop}}
  ports:
  - {{name: web, port: 80, targetPort: {http}, appProtocol: http}}
  - {{name: greeter, port: {greeter}, appProtocol: tcp-server-first}}
---
apiVersion: v1
kind: Service
metadata: {{name: shop6, namespace: default}}
spec:
  clusterIP: '{v6}'
  selector: {{app: shop}}
  ports: [{{name: web, port: 80, targetPort: {http}, appProtocol: http}}]
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {{name: books, namespace: default}}
spec: {{matches: [{{name: books, pathRegex: /books.*, methods: ['*']}}]}}
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: TCPRoute
metadata: {{name: greeter, namespace: default}}
spec: {{matches: {{ports: [{greeter}]}}}}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: books, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: shop, namespace: default}}
  sources: [{sources}]
  rules: [{{kind: HTTPRouteGroup, name: books}}]
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {{name: greetings, namespace: default}}
spec:
  destination: {{kind: ServiceAccount, name: shop, namespace: default}}
  sources: [{sources}]
  rules: [{{kind: TCPRoute, name: greeter}}]
"""


def policy(*clients: str) -> str:
    """Return services and policy that let these ServiceAccounts call the shop's books and greeter."""
    sources = ", ".join(f"{{kind: ServiceAccount, name: {each}, namespace: default}}" for each in clients)
    at = {"v4": CALLED_AT[V4], "v6": CALLED_AT[V6]}
    return POLICY.format(**at, http=HTTP, greeter=GREETER, sources=sources)


def _workload(name: str, families: Families, how: Transparent) -> str:
    address, *others = (ADDRESSES[name][family] for family in families)
    return (
        "---\napiVersion: meshwright.dev/v1alpha1\nkind: Workload\n"
        f"metadata: {{name: {name}, namespace: default, labels: {{app: {name}, kept: by-us}}}}\n"
        f"spec: {{address: '{address}', otherAddresses: {json.dumps(others)}, "
        f"serviceAccount: {name}, uuid: {name}-uuid, "
        f"interception: {{capture: {how.capture}, ipv6: {json.dumps(how.ipv6)}}}}}\n"
    )


@dataclass
class Meshed:
    """The machines, the control plane on the switch, and an agent on each machine."""

    state: Path
    family: socket.AddressFamily
    how: Transparent
    envoy: str
    ends: AsyncExitStack
    machines: dict[str, Machine]
    agents: dict[str, Agent] = field(default_factory=dict)
    joining: bool = False
    """Machines are given a join token, and no certificate."""
    stacks: Mapping[str, Families] | None = None
    """What addresses each machine has, and a Workload says; None is both, and it says the one of `family`."""
    plane: PlaneAddresses = PLANE
    settings: tuple[str, ...] = ()
    """What the control plane is told besides."""
    serving: asyncio.subprocess.Process | None = None

    @classmethod
    async def start(
        cls,
        state: Path,
        family: socket.AddressFamily,
        how: Transparent,
        envoy: str,
        ends: AsyncExitStack,
        capabilities: tuple[str, ...] = (),
        *,
        joining: bool = False,
        stacks: Mapping[str, Families] | None = None,
        settings: tuple[str, ...] = (),
    ) -> "Meshed":
        """Start everything; peers reach the workloads by this family. Return when both are served."""
        made = await cls.without_agents(
            state, family, how, envoy, ends, joining=joining, stacks=stacks, settings=settings
        )
        await asyncio.gather(*(made.agent(name, capabilities) for name in ADDRESSES))
        await made.intercept(how)
        await until(made.serves)
        return made

    @classmethod
    async def without_agents(
        cls,
        state: Path,
        family: socket.AddressFamily,
        how: Transparent,
        envoy: str,
        ends: AsyncExitStack,
        *,
        joining: bool = False,
        stacks: Mapping[str, Families] | None = None,
        application: str = "",
        settings: tuple[str, ...] = (),
    ) -> "Meshed":
        """Start the control plane and the shop's application, on one address or on all."""
        machines = {name: ends.enter_context(machine()) for name in ("switch", *ADDRESSES)}
        _join(machines, stacks or EVERY)
        made = cls(state, family, how, envoy, ends, machines, joining=joining, stacks=stacks)
        made.settings = settings
        if any(V4 not in made.families(name) for name in EVERY):
            made.plane = PLANE_IPV6
        (state / "mesh").mkdir()
        made.declare(how)
        made.apply(policy("alice", "shop"))
        await made.serve()
        listening = made.families("shop")[0] if stacks else V4
        await applications.start("shop", partial(bound, machines["shop"], listening, host=application), ends)
        return made

    def families(self, name: str) -> Families:
        """Return the families of a machine's addresses."""
        return (self.stacks or EVERY)[name]

    def apply(self, text: str) -> None:
        """Replace the policy file."""
        self.write("policy.yaml", text)

    def declare(self, how: Transparent) -> None:
        """Replace the workloads file, with this interception on both machines."""
        self.write("workloads.yaml", "".join(self._workload(name, how) for name in ADDRESSES))

    def _workload(self, name: str, how: Transparent) -> str:
        return _workload(name, self.families(name) if self.stacks else (self.family,), how)

    async def intercept(self, how: Transparent) -> None:
        """Set the rules on both machines."""
        flags = ["--capture", how.capture.value, *(["--ipv6"] if how.ipv6 else [])]
        for address in ADDRESSES:
            await asyncio.to_thread(self.machines[address].run, str(COMMAND), "intercept", *flags)

    def write(self, name: str, text: str) -> None:
        """Replace a file of the mesh directory atomically, like an editor."""
        new = self.state / "mesh" / f".{name}.new"
        new.write_text(text)
        new.replace(self.state / "mesh" / name)

    async def serve(self) -> None:
        """Start the control plane and wait until it responds."""
        command = [*self.machines["switch"].enter, str(COMMAND), "serve"]
        command += ["--mesh", str(self.state / "mesh"), "--state", str(self.state / "control")]
        command += ["--ads-address", self.plane.ads, "--http-address", self.plane.http]
        command += ["--debug-address", self.plane.debug]
        if self.joining:
            command += ["--set", f"enrolment_address={JOINED}", "--set", f"renewal_address={RENEWED}"]
            command += ["--set", "trust_seconds=2"]
        command += [part for setting in self.settings for part in ("--set", setting)]
        with (self.state / "serve.log").open("ab") as log:
            self.serving = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        self.ends.push_async_callback(_gone, self.serving)
        await until(self._answers)

    async def _answers(self) -> bool:
        assert self.serving is not None
        assert self.serving.returncode is None, (self.state / "serve.log").read_text()[-2000:]
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            return bool(await self.ask("/debug/proxy"))
        return False

    async def crash(self) -> None:
        """Kill the control plane."""
        assert self.serving is not None
        self.serving.kill()
        await self.serving.wait()

    async def ask(self, path: str) -> Any:
        """Query the control plane on its socket."""
        plane = ControlPlane(self.state / "mesh", self.state / "control", self.plane)
        return await plane.ask(path)

    async def synced(self) -> bool:
        """Return whether both proxies are connected and have acknowledged their resources."""
        try:
            streams = (await self.ask("/debug/xds"))["streams"]
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False
        states = {kind["state"] for stream in streams for kind in stream["types"].values()}
        return len(streams) == len(self.agents) and states == {"synced"}

    def place(self, name: str, family: socket.AddressFamily = V4) -> Place:
        """Return the place of a machine's application."""
        return Place(open_socket=partial(self.machines[name].socket, family, APPLICATION_UID))

    async def get(self, caller: str, url: str, family: socket.AddressFamily = V4) -> tuple[int, str]:
        """Send a request of a machine's application on a new connection."""
        return await get_from(self.place(caller, family), url)

    async def books(self, caller: str, family: socket.AddressFamily) -> tuple[int, str]:
        """Request books from the shop, from a machine's application, at the address of a family."""
        host = CALLED_AT[family]
        at = f"[{host}]" if family == V6 else host
        return await self.get(caller, f"http://{at}/books", family)

    async def serves(self) -> bool:
        """Return whether both machines get books at all their addresses."""
        calls = [self.books(caller, family) for caller in ADDRESSES for family in self.families(caller)]
        return {status for status, _ in await asyncio.gather(*calls)} == {200}

    def log(self, name: str, caller: str | None) -> list[dict[str, Any]]:
        """Return a proxy's access log of calls from that identity; None selects calls without one."""
        lines = (self.state / name / "agent.log").read_text().splitlines()
        result = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        if caller is None:
            return [item for item in result if "caller" in item and item["caller"] is None]
        return [item for item in result if str(item.get("caller")).endswith(f"/sa/{caller}")]

    async def stat(self, name: str, pattern: str) -> int:
        """Return the sum of a proxy's counters and gauges that match a pattern."""
        agent = self.agents[name]
        _, text = await agent.get(f"{agent.admin}/stats?filter={pattern}")
        return sum(int(line.rpartition(" ")[2]) for line in text.splitlines())

    async def drained(self, name: str) -> bool:
        """Return whether a proxy has no connection left that came by an earlier filter chain or listener."""
        return not await self.stat(name, r"^listener_manager\.total_.*_draining$")

    async def agent(self, name: str, capabilities: tuple[str, ...]) -> Agent:
        """Give a machine its certificate or a token, and start its agent; return when its proxy is ready."""
        folder = self.state / name
        (folder / "run").mkdir(parents=True)
        (folder / "override.json").write_text("{}")
        await self.entitle(name)
        (folder / "hosts").touch()
        return await self.begin(name, capabilities)

    async def entitle(self, name: str) -> None:
        """Give a machine its certificate, or a join token."""
        of = ["--state", str(self.state / "control"), "--uuid", f"{name}-uuid", "--service", name]
        of += ["--namespace", "default", "--out"]
        if self.joining:
            (self.state / name / "token").unlink(missing_ok=True)
            issue = [str(COMMAND), "certs", "token", "create", *of, str(self.state / name / "token")]
        else:
            issue = [str(COMMAND), "certs", "issue-proxy", *of, str(self.state / name / "credentials")]
        await asyncio.to_thread(self.machines["switch"].run, *issue)

    async def begin(self, name: str, capabilities: tuple[str, ...] = (), *, seconds: float = 60) -> Agent:
        """Start a machine's agent with the machine's files; return when its proxy is ready."""
        folder = self.state / name
        for path in (folder, *folder.rglob("*")):
            os.chown(path, PROXY_UID, PROXY_UID, follow_symlinks=False)
        command = [str(COMMAND), "agent", "--credentials", str(folder / "credentials")]
        command += ["--ads", self.plane.ads]
        command += ["--run", str(folder / "run"), "--envoy", str(self._program()), "--concurrency", "1"]
        command += ["--hosts-file", str(folder / "hosts"), "--override", str(folder / "override.json")]
        command += ["--drain-seconds", "2", "--parent-shutdown-seconds", "3"]
        command += ["--termination-least-seconds", "0", "--termination-most-seconds", "1"]
        if self.joining:
            command += ["--enrol", JOINED, "--join-token", str(folder / "token"), "--renewal", RENEWED]
        user = as_user(PROXY_UID, command, [COMMAND, Path(self.envoy), self.state], capabilities)
        with (folder / "agent.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self.machines[name].enter, *user, stdout=log, stderr=log
            )
        get = partial(get_from, Place(open_socket=partial(self.machines[name].socket, V4, PROXY_UID)))
        made = Agent(process, folder, STATUS, get)
        self.agents[name] = made
        self.ends.push_async_callback(end, made)
        await until(made.ready, seconds)
        return made

    def _program(self) -> Path:
        """Return a script that starts Envoy with a short flush interval, which is ten seconds by default."""
        script = self.state / "envoy"
        if not script.exists():
            script.write_text(f'#!/bin/sh\nexec {self.envoy} "$@" --file-flush-interval-msec 20\n')
            script.chmod(0o755)
        return script


async def _gone(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        await process.wait()


def _join(machines: dict[str, Machine], stacks: Mapping[str, Families]) -> None:
    """Connect every machine to the switch, with its addresses."""
    switch = machines["switch"]
    lines = ["link add bridge0 type bridge"]
    lines += [_addressed(SWITCH, family, "bridge0") for family in stacks["switch"]]
    lines += ["link set bridge0 up"]
    for number, name in enumerate(ADDRESSES):
        cable = f"link add port{number} type veth peer name eth0 netns {machines[name].pid}"
        lines += [cable, f"link set port{number} master bridge0", f"link set port{number} up"]
    switch.run("ip", "-batch", "-", given="\n".join(lines) + "\n")
    for name, address in ADDRESSES.items():
        lines = [_addressed(address, family, "eth0") for family in stacks[name]]
        lines += ["link set eth0 up"]
        machines[name].run("ip", "-batch", "-", given="\n".join(lines) + "\n")
        for family in stacks[name]:
            which = "-4" if family is V4 else "-6"
            machines[name].run("ip", which, "route", "add", "default", "dev", "eth0")


def _addressed(addresses: Mapping[socket.AddressFamily, str], family: socket.AddressFamily, link: str) -> str:
    return f"address add {addresses[family]}{'/24' if family is V4 else '/64 nodad'} dev {link}"


def bound(at: Machine, family: socket.AddressFamily, port: int, host: str = "") -> socket.socket:
    """Return an application's socket, bound to all addresses of a family or to one."""
    made = at.socket(family, APPLICATION_UID)
    made.settimeout(None)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family is V6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind((host, port))
    return made
