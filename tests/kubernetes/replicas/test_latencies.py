"""Seconds until what happens at one server is in force at the others."""

import time
from functools import partial
from typing import Final

import pytest

from meshwright.mesh.identity import ProxyName
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.observers import Observer, running
from tests.kubernetes.replicas.rows import LONG
from tests.meshes import texts
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(900)]

SAMPLES: Final = 20
GOAL_SECONDS: Final = 1.0
SLACK: Final = 3.0
"""Factor for a machine that is busy with the test itself; the table has the measured times."""


async def test_revocations_at_one_server_end_streams_at_another(mesh: Mesh) -> None:
    """The stream of a proxy at another server ends, counted from the answer to the revocation."""
    here, there, _ = mesh.replicas
    proxies = await _made(mesh, "gone", here.ads)
    for proxy in proxies:
        proxy.addresses = (there.ads,)
    times = []
    with running(proxies):
        await until(lambda: all(proxy.is_served for proxy in proxies))
        async with mesh.row("a revocation at one server, in force at another") as row:
            for proxy in proxies:
                began = time.monotonic()
                status, text = await here.revoke(mesh.serials[proxy.name])
                assert status == 200, text
                await until(partial(_is_refused, proxy))
                times.append(proxy.refusals[0][0] - began)
            row.healed, row.note = _highest(times), _described(times)
    assert _highest(times) <= GOAL_SECONDS * SLACK, times


async def test_admissions_at_one_server_reach_callers_at_another(mesh: Mesh) -> None:
    """A workload whose proxy is ready at one server gets calls from a proxy of another server.

    Counted from the last response that the new proxy was sent until its address has arrived at the caller.
    """
    here, there, _ = mesh.replicas
    caller = mesh.observers[0]
    await mesh.moves_to(caller, there)
    proxies = await _made(mesh, "new", here.ads, called_by=caller)
    times = []
    async with mesh.row("a workload is ready at one server, called from another", changes=True) as row:
        for number, proxy in enumerate(proxies):
            with running([proxy]):
                address = f"10.0.2.{number + 1}"
                await until(partial(_is_served, proxy))
                began = time.monotonic()
                await until(partial(caller.arrived.__contains__, address))
                times.append(caller.arrived[address] - began)
        row.healed, row.note = _highest(times), _described(times)
    assert _highest(times) <= GOAL_SECONDS * SLACK, times


def _is_served(proxy: Observer) -> bool:
    return proxy.is_served


def _is_refused(proxy: Observer) -> bool:
    return bool(proxy.refusals)


async def _made(mesh: Mesh, prefix: str, address: str, called_by: Observer | None = None) -> list[Observer]:
    """Write workloads with their services, issue certificates, and return their proxies."""
    names = [f"{prefix}-{number}" for number in range(SAMPLES)]
    documents = []
    for number, name in enumerate(names, 1):
        documents += [texts.account(name), texts.workload(name, f"10.0.2.{number}"), texts.service(name)]
        if called_by is not None:
            caller = ProxyName.parse(called_by.name).service
            documents.append(texts.target(f"calls-{name}", caller, name, texts.http("all")))
    if called_by is not None:
        documents.append(texts.route_group("all", texts.match("all", ".*")))
    (mesh.manifests / f"{prefix}.yaml").write_text(texts.joined(*documents))
    made = []
    for name in names:
        proxy = ProxyName.parse(f"{name}.{name}.shop")
        folder = mesh.manifests.parent / name
        mesh.serials[str(proxy)] = await mesh.replicas[0].issued(proxy, folder)
        made.append(Observer(str(proxy), folder, (address,)))
    return made


def _highest(times: list[float]) -> float:
    return max(times)


def _described(times: list[float]) -> str:
    ordered = sorted(times)
    return f"{len(times)} samples: median {ordered[len(times) // 2]:.3f} s, longest {ordered[-1]:.3f} s"
