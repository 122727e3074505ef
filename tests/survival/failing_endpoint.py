"""A service with several endpoints under load, one of which fails: lost requests and their duration.

It needs a separate network namespace: there, packets to the address of a vanished machine are dropped.
"""

import asyncio
import enum
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import aiohttp
import yaml
from google.protobuf.any_pb2 import Any as AnyMessage

from catalog.policy.values.proxy import ProxyPolicy
from catalog.store.view import MeshSettings, View
from meshwright.mesh.policies.resilience import Resilience, RetryPolicy
from meshwright.providers.directory.manifests import Manifests
from meshwright.sidecars.envoy.features.retries import Retries
from protos.envoy.config.route.v3 import route_pb2
from tests.e2e.agent.scenes import Scene
from tests.golden.running_mesh import TRUST_DOMAIN, LiveMesh
from tests.meshes.resources import resources
from tests.tools.deadline import until
from xds.protocol.resources.resource import ROUTE, Resource, encode

CLIENT, PORT = "127.77.0.1", 8080
OFF = Resilience(connect_timeout=timedelta(seconds=5), retry=None, outliers=None, keepalive=None)
ISTIO_TIMEOUT = timedelta(seconds=10)
ISTIO_RETRIES = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
"""What Istio documents as its default: 2 retries, of answers 503 too; no outlier detection."""

WORKERS, PAUSE = 8, 0.02
"""Who asks, and how long each rests between two requests."""
WARM_SECONDS, PATIENCE = 0.5, 15.0
"""Load before the fault; how long a request may take until it has failed."""


class Fault(enum.StrEnum):
    """The fault of one endpoint."""

    APPLICATION_KILLED = "application killed"
    ENVOY_KILLED = "Envoy killed"
    AGENT_KILLED = "agent killed"
    VANISHED = "machine vanished"
    ANSWERS_500 = "answers 500"
    HANGS = "hangs"


class Defaults(enum.StrEnum):
    """The settings of sidecars against faults."""

    OFF = "off"
    OURS = "ours"
    ISTIO = "as Istio's"


@dataclass(frozen=True)
class Outcome:
    """The outcomes of the requests from the fault on; seconds are since the fault.

    `last` is the time of the last failed request, or None; `slow` requests took longer than a second.
    """

    requests: int
    failed: int
    slow: int
    last: float | None


@dataclass(frozen=True)
class _Call:
    began: float
    ended: float
    ok: bool


async def measured(defaults: Defaults, fault: Fault, endpoints: int, seconds: float) -> Outcome:
    """Start everything, let one endpoint fail, and measure for `seconds`."""
    async with AsyncExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="survival-"))
        state = Path(folder)
        programs = [_application(number, ends) for number in range(endpoints)]
        mesh = await LiveMesh.start(state, yaml.safe_dump_all(documents(endpoints)), ends)
        mesh.translate = _as_istio if defaults is Defaults.ISTIO else resources
        mesh.publish(_view(endpoints, defaults))
        agent: int | None = None
        for number in range(endpoints):
            if number == 0 and fault is Fault.AGENT_KILLED:
                command = Path(sys.executable).with_name("meshwright")
                scene = Scene(mesh, os.environ["MESHWRIGHT_ENVOY"], str(command), ends)
                agent = (await scene.agent("shop-0")).process.pid
            else:
                await mesh.envoy(f"shop-{number}")
        await mesh.envoy("client")
        await mesh.in_force()
        await until(_answered)
        calls: list[_Call] = []
        async with asyncio.TaskGroup() as group:
            until_then = time.monotonic() + WARM_SECONDS + seconds
            for _ in range(WORKERS):
                group.create_task(_asking(calls, until_then), name="asking")
            await asyncio.sleep(WARM_SECONDS)
            failed_at = time.monotonic()
            undo = _fail(fault, state, programs[0], agent)
        undo()
        return _outcome(calls, failed_at)


def _outcome(calls: list[_Call], failed_at: float) -> Outcome:
    after = [call for call in calls if call.ended >= failed_at]
    failures = [call.ended - failed_at for call in after if not call.ok]
    slow = sum(call.ended - call.began > 1 for call in after)
    return Outcome(len(after), len(failures), slow, round(max(failures), 1) if failures else None)


async def _asking(calls: list[_Call], until_then: float) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as session:
        while time.monotonic() < until_then:
            began, ok = time.monotonic(), False
            try:
                async with session.get(f"http://{CLIENT}:{PORT}/") as answer:
                    await answer.read()
                    ok = answer.status == 200
            except (aiohttp.ClientError, TimeoutError):
                ok = False
            calls.append(_Call(began, time.monotonic(), ok))
            await asyncio.sleep(PAUSE)


async def _answered() -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://{CLIENT}:{PORT}/") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


def _fail(
    fault: Fault, state: Path, program: subprocess.Popen[bytes], agent: int | None
) -> Callable[[], None]:
    """Cause a fault; return the function that undoes it, if that is necessary."""
    match fault:
        case Fault.APPLICATION_KILLED:
            program.kill()
        case Fault.ANSWERS_500:
            program.send_signal(signal.SIGUSR1)
        case Fault.HANGS:
            program.send_signal(signal.SIGSTOP)
        case Fault.ENVOY_KILLED:
            (pid,) = _with(f"{state / 'shop-0'}/envoy.log")
            os.kill(pid, signal.SIGKILL)
        case Fault.AGENT_KILLED:
            assert agent is not None
            os.kill(agent, signal.SIGKILL)
        case Fault.VANISHED:
            _drop("-A")
            return partial(_drop, "-D")
    return _nothing


def _nothing() -> None:
    """Undo nothing."""


def _drop(what: str) -> None:
    for side in ("-s", "-d"):
        subprocess.run(["iptables", "-w", what, "INPUT", side, address(0), "-j", "DROP"], check=True)


def _with(argument: str) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)
        except OSError:
            continue


def _application(number: int, ends: AsyncExitStack) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__).with_name("application.py"))]
    program = subprocess.Popen([*command, address(number, application=True), str(PORT)])
    ends.callback(program.wait)
    ends.callback(program.kill)
    return program


def address(number: int, *, application: bool = False) -> str:
    """Return the address of an endpoint, or of its application."""
    return f"127.77.{2 if application else 1}.{number + 1}"


def _view(endpoints: int, defaults: Defaults) -> View:
    read = Manifests().apply("mesh.yaml", yaml.safe_dump_all(documents(endpoints)))
    resilience = {
        Defaults.OFF: OFF,
        Defaults.OURS: Resilience(),
        Defaults.ISTIO: Resilience(ISTIO_TIMEOUT, None, None, None),
    }[defaults]
    return View.build(read.objects(), MeshSettings(trust_domain=TRUST_DOMAIN, resilience=resilience))


def _as_istio(policy: ProxyPolicy) -> tuple[Resource, ...]:
    return tuple(
        _retried(resource) if resource.type_url == ROUTE else resource for resource in resources(policy)
    )


def _retried(resource: Resource) -> Resource:
    message = route_pb2.RouteConfiguration.FromString(AnyMessage.FromString(resource.body).value)
    if "inbound" in message.name:
        return resource
    policy = message.virtual_hosts[0].retry_policy
    policy.retry_on = ISTIO_RETRIES
    policy.num_retries.value = 2
    policy.retriable_status_codes.append(503)
    ours = route_pb2.RouteConfiguration()
    ours.virtual_hosts.add()
    Retries(RetryPolicy(), to_mesh=True).to_routes(ours)
    policy.retry_host_predicate.extend(ours.virtual_hosts[0].retry_policy.retry_host_predicate)
    policy.host_selection_retry_max_attempts = 5
    return encode(message, resource.references)


def documents(endpoints: int) -> list[dict[str, object]]:
    """Return the manifests of a service with this number of endpoints, and of its client."""
    port = {"name": "web", "port": 80, "targetPort": PORT, "appProtocol": "http"}
    meta = {"namespace": "default"}
    result: list[dict[str, object]] = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta | {"name": "shop"},
            "spec": {"selector": {"app": "shop"}, "ports": [port]},
        },
        _workload("client", CLIENT),
        {
            "apiVersion": "specs.smi-spec.io/v1alpha4",
            "kind": "HTTPRouteGroup",
            "metadata": meta | {"name": "all"},
            "spec": {"matches": [{"name": "all", "pathRegex": ".*", "methods": ["*"]}]},
        },
        {
            "apiVersion": "access.smi-spec.io/v1alpha3",
            "kind": "TrafficTarget",
            "metadata": meta | {"name": "client-to-shop"},
            "spec": {
                "destination": {"kind": "ServiceAccount", "name": "shop", "namespace": "default"},
                "sources": [{"kind": "ServiceAccount", "name": "client", "namespace": "default"}],
                "rules": [{"kind": "HTTPRouteGroup", "name": "all", "matches": ["all"]}],
            },
        },
    ]
    return [*result, *(_workload(f"shop-{number}", address(number), number) for number in range(endpoints))]


def _workload(name: str, at: str, number: int | None = None) -> dict[str, object]:
    spec: dict[str, object] = {"address": at, "uuid": name}
    account = "client" if number is None else "shop"
    spec["serviceAccount"] = account
    if number is None:
        spec["upstreams"] = [{"service": "shop", "port": 80, "address": CLIENT, "localPort": PORT}]
    else:
        spec["applicationAddress"] = address(number, application=True)
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": account}},
        "spec": spec,
    }
