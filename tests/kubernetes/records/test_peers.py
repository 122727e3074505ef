"""Tests of views over three real servers of one mesh, which share their state on a real API server."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from meshwright.mesh.identity import ProxyName
from tests.kubernetes.records.test_servers import Replica, Stream, _rules, _secret, until
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

_APPLIED: Final = re.compile(r"applied by ([1-9]) of \1 proxies connected to 3 replicas")

Answer = dict[str, Any]


@pytest.fixture
def replicas(
    shared_cluster: RunningCluster, kubectl: Kubectl, home: str, typed: Typed, tmp_path: Path
) -> Iterator[tuple[Replica, ...]]:
    """Return three servers that are not started yet, with the roles of our manifests only."""
    accounts = Accounts(shared_cluster, replace(kubectl, namespace=home), tmp_path / "accounts")
    account = accounts.make("meshwright", _rules("ClusterRole"))
    accounts.allow(account, _rules("Role"), everywhere=False)
    kubectl.apply(_secret(home))
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


async def answers(replica: Replica, *arguments: str) -> Answer:
    """Return the JSON of a command, which runs in a thread."""
    return await asyncio.to_thread(asked, replica, *arguments)


def _connected(answer: Answer) -> dict[str, str]:
    """Return the server of each connected proxy."""
    return {proxy["name"]: proxy["replica"] for proxy in answer["proxies"] if proxy["state"] == "connected"}


async def _until_shown(replica: Replica, where: dict[str, str]) -> None:
    """Wait until a server shows each proxy with its server."""
    await until(lambda: _connected(asked(replica, "proxies")) == where)


async def test_every_view_from_each_of_three_servers(
    replicas: tuple[Replica, ...], buyer: ProxyName, kubectl: Kubectl, tmp_path: Path
) -> None:
    """All proxies are seen from each server; one that hangs is named at once, and one that is killed goes."""
    await asyncio.gather(*(asyncio.to_thread(replica.start) for replica in replicas))
    shop = ProxyName.parse(f"shop-{buyer.namespace}.shop.{buyer.namespace}")
    folders = [
        await asyncio.to_thread(replicas[0].issued, name, tmp_path / name.service) for name in (buyer, shop)
    ]

    def are_all_here() -> bool:
        listed = [asked(replica, "replicas") for replica in replicas]
        return all(
            [len(item["replicas"]), len(item["partial"])] == [3, 0]
            and all(of["state"] == "ready" and of["inputs"] for of in item["replicas"])
            and item["leader"]
            for item in listed
        )

    await until(are_all_here)
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

        kubectl.apply(objects.routes("all", "/books/.*"))
        await asyncio.to_thread(
            wait_until,
            lambda: _APPLIED.fullmatch(_programmed(kubectl)),
            SECONDS,
            lambda: kubectl.get("httproutegroups.specs.smi-spec.io", "all").get("status"),
        )
        states = {name: _metric(replica) for name, replica in zip(names, replicas, strict=True)}
        leader = (await answers(replicas[0], "replicas"))["leader"]
        assert states == {
            name: {"connected": int(name in where.values()), "expected": 0, "disconnected": 0, "ended": 0}
            for name in names
        }, leader

        hanging = replicas[2].running.process
        os.kill(hanging.pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                partial = (await answers(replicas[0], "proxies"))["partial"]
            assert partial == [{"replica": names[2], "reason": "no answer within 2 s"}]
        finally:
            os.kill(hanging.pid, signal.SIGCONT)
        await until(lambda: _connected(asked(replicas[0], "proxies")) == where)

        replicas[2].running.process.send_signal(signal.SIGKILL)
        await until(lambda: len(asked(replicas[0], "replicas")["replicas"]) == 2)
        gone = await answers(replicas[0], "proxies")
        assert (gone["partial"], _connected(gone)) == ([], {str(buyer): names[1]})
    for replica in replicas[:2]:
        await asyncio.to_thread(replica.running.stop)


def _programmed(kubectl: Kubectl) -> str:
    """Return the message about the proxies that have applied the last change of the routes."""
    status = kubectl.get("httproutegroups.specs.smi-spec.io", "all").get("status") or {}
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
