"""Tests of views over three real servers of one mesh, which share their state on a real API server."""

import asyncio
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from meshwright.mesh.identity import ProxyName
from tests.kubernetes.records.test_servers import Replica, Stream, _rules, custody, until
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools.deadline import wait_until
from tests.tools.forked_cli import Typed
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster

NAMES: Final = ("a", "b", "c")
SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 10.0
"""Longest time of a command while a server hangs: the limit is 2 s, on a busy machine."""

Answer = dict[str, Any]


@pytest.fixture
def replicas(
    shared_cluster: RunningCluster, kubectl: Kubectl, home: str, typed: Typed, tmp_path: Path
) -> Iterator[tuple[Replica, ...]]:
    """Return three servers that are not started yet, with the roles of our manifests only."""
    accounts = Accounts(shared_cluster, replace(kubectl, namespace=home), tmp_path / "accounts")
    account = accounts.make("meshwright", _rules("ClusterRole"))
    accounts.allow(account, _rules("Role"), everywhere=False)
    kubectl.apply(custody(home))
    made = list[Replica]()
    for name in NAMES:
        program = Program(tmp_path / name / "state", tmp_path / name / "files", typed)
        program.reads = ()
        program.environment["POD_NAMESPACE"] = home
        flags = (
            *("--kubernetes", "--kubeconfig", str(account.kubeconfig)),
            *("--namespaces", kubectl.namespace, "--set", "store=kubernetes"),
            *("--set", "peer_address=127.0.0.1:0"),
        )
        made.append(Replica(program, flags))
    yield tuple(made)
    for replica in made:
        replica.program.end()


def asked(replica: Replica, *arguments: str) -> Answer:
    """Return the JSON of a command, whatever the exit status."""
    status, out, complaint = replica.program.run(*arguments, "--json", "--state", str(replica.program.state))
    assert status in (0, 1), complaint
    answer = json.loads(out)
    assert isinstance(answer, dict), out
    return answer


def seen(replica: Replica, path: str) -> Answer:
    """Return the answer of a server's API, which costs less than a command."""
    with urllib.request.urlopen(
        f"http://{replica.running.bound['debug']}/api/v1{path}", timeout=SECONDS
    ) as got:
        answer = json.load(got)
    assert isinstance(answer, dict)
    return answer


def are_all_here(replicas: tuple[Replica, ...]) -> bool:
    """Return whether each server sees all of them, and one that leads."""
    listed = [seen(replica, "/replicas") for replica in replicas]
    return all(
        (len(item["replicas"]), item["partial"]) == (len(replicas), [])
        and all(of["state"] == "ready" and of["inputs"] for of in item["replicas"])
        and item["leader"]
        for item in listed
    )


async def answers(replica: Replica, *arguments: str) -> Answer:
    """Return the JSON of a command, which runs in a thread."""
    return await asyncio.to_thread(asked, replica, *arguments)


def _connected(answer: Answer) -> dict[str, str]:
    """Return the server of each connected proxy."""
    return {proxy["name"]: proxy["replica"] for proxy in answer["proxies"] if proxy["state"] == "connected"}


async def _until_shown(replica: Replica, where: dict[str, str]) -> None:
    """Wait until a server shows each proxy with its server."""
    await until(lambda: _connected(seen(replica, "/proxies")) == where)


async def test_every_view_from_each_of_three_servers(
    replicas: tuple[Replica, ...], buyer: ProxyName, tmp_path: Path
) -> None:
    """All proxies are seen from each server; one that hangs is named at once, and one that is killed goes."""
    await asyncio.gather(*(asyncio.to_thread(replica.start) for replica in replicas))
    shop = ProxyName.parse(f"shop-{buyer.namespace}.shop.{buyer.namespace}")
    folders = [
        await asyncio.to_thread(replicas[0].issued, name, tmp_path / name.service) for name in (buyer, shop)
    ]

    await until(lambda: are_all_here(replicas))
    names = [(await answers(replica, "replicas"))["own"] for replica in replicas]
    async with AsyncExitStack() as stack:
        streams: list[Stream] = [
            await stack.enter_async_context(replica.stream(name, folder))
            for replica, name, folder in zip(replicas[1:], (buyer, shop), folders, strict=True)
        ]
        for stream in streams:
            await stream.until(stream.is_served)
        where = {str(buyer): names[1], str(shop): names[2]}
        for replica in replicas:
            await _until_shown(replica, where)
            await _compare_views(replica, buyer, where)
        alone = await answers(replicas[0], "proxies", "--replica", names[1])
        assert _connected(alone) == {str(buyer): names[1]}
        status, out, complaint = await asyncio.to_thread(
            replicas[0].program.run, "check", "--json", "--state", str(replicas[0].program.state)
        )
        checks = {check["name"]: check for check in json.loads(out)["checks"]}
        assert [checks[name]["status"] for name in ("store", "replicas", "inputs", "in step")] == [
            "ok"
        ] * 4, (
            out,
            complaint,
            status,
        )

        hanging = replicas[2].running.process
        os.kill(hanging.pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                partial = (await answers(replicas[0], "proxies"))["partial"]
            assert partial == [{"replica": names[2], "reason": "no answer within 2 s"}]
        finally:
            os.kill(hanging.pid, signal.SIGCONT)
        await until(lambda: _connected(seen(replicas[0], "/proxies")) == where)

        replicas[2].running.process.send_signal(signal.SIGKILL)
        await until(lambda: len(seen(replicas[0], "/replicas")["replicas"]) == 2)
        gone = await answers(replicas[0], "proxies")
        assert (gone["partial"], _connected(gone)) == ([], {str(buyer): names[1]})
    for replica in replicas[:2]:
        await asyncio.to_thread(replica.running.stop)


async def test_status_and_gauges_count_proxies_of_all_servers(
    replicas: tuple[Replica, ...],
    buyer: ProxyName,
    kubectl: Kubectl,
    shared_cluster: RunningCluster,
    tmp_path: Path,
) -> None:
    """The leader reports for the proxies of another server, and nobody calls these disconnected."""
    both = replicas[:2]
    for replica in both:
        replica.flags += ("--set", "endpoint_admission=off")
    await asyncio.gather(*(asyncio.to_thread(replica.start) for replica in both))
    await until(lambda: are_all_here(both))
    answer = await asyncio.to_thread(seen, both[0], "/replicas")
    leader, other = both if answer["own"] == answer["leader"] else reversed(both)
    folder = await asyncio.to_thread(leader.issued, buyer, tmp_path / "buyer")
    async with leader.stream(buyer, folder) as before:
        await before.until(before.is_served)
    async with other.stream(buyer, folder) as moved:
        await moved.until(moved.is_served)
        kubectl.apply(objects.workload("extra", "10.244.9.8", "shop", app="shop"))
        await asyncio.to_thread(
            wait_until,
            lambda: _programmed(kubectl) == "applied by 1 of 1 proxies connected to 2 servers",
            SECONDS,
            lambda: kubectl.get("workload", "extra").get("status"),
        )
        # Both proxies of the shop have never connected.
        counts = {"connected": 0, "expected": 2, "disconnected": 0, "ended": 0}
        await until(lambda: _metric(leader) == counts)
        await until(lambda: _metric(other) == counts | {"connected": 1, "expected": 0})
        # A revocation that the store cannot take ends the stream at the other server all the same.
        (certificate,) = (await asyncio.to_thread(seen, other, "/certificates"))["proxy_certificates"]
        await asyncio.to_thread(shared_cluster.api.kill)
        try:
            status, _, complaint = await asyncio.to_thread(
                leader.program.run,
                *("certs", "revoke", certificate["serial"], "--state", str(leader.program.state)),
            )
            assert status == 2
            assert "in force at 2 of 2 servers, not kept" in complaint
            await until(moved.task.done)
        finally:
            await asyncio.to_thread(shared_cluster.api.again)
    await until(lambda: _metric(leader) == counts | {"disconnected": 1})
    for replica in both:
        await asyncio.to_thread(replica.running.stop)


def _programmed(kubectl: Kubectl) -> str:
    """Return the message about the proxies that have applied the last change of a Workload."""
    status = kubectl.get("workload", "extra").get("status") or {}
    conditions = {item["type"]: item["message"] for item in status.get("conditions", ())}
    return str(conditions.get("Programmed", ""))


def _metric(replica: Replica) -> dict[str, int]:
    """Return the numbers of proxies by state that a server measures."""
    lines = replica.running.get("/metrics")[1].splitlines()
    found = (line for line in lines if line.startswith("meshwright_proxies{"))
    return {line.split('"')[1]: int(float(line.rpartition(" ")[2])) for line in found}


async def _compare_views(replica: Replica, buyer: ProxyName, where: dict[str, str]) -> None:
    """Assert that the views of one server are complete."""
    shown = await answers(replica, "proxy", "show", str(buyer))
    assert (shown["state"], shown["replica"]) == ("connected", where[str(buyer)])
    assert {push["replica"] for push in shown["history"]} == {where[str(buyer)]}
    request = ("--from", f"{buyer.namespace}/buyer", "--to", f"{buyer.namespace}/shop:80")
    explained = await answers(replica, "explain", "GET", "/", *request)
    assert (explained["partial"], explained["in_force"]) == ([], "yes"), explained
    certificates = await answers(replica, "certs", "list")
    parts = {item["cn"]: item for item in certificates["participants"]}
    assert {name: parts[name]["replica"] for name in where} == where
    assert all(parts[name]["service_certificate"] for name in where)
    figures = await answers(replica, "stat", "edges")
    assert (figures["reporting"]["connected"], figures["partial"]) == (2, [])
