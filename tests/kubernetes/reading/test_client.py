"""Tests of the API client and the reflector on a real API server."""

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from meshwright.kube.api import Api
from meshwright.kube.call import Call
from meshwright.kube.connection.connection import Connection, find_connection
from meshwright.kube.discovery import served
from meshwright.kube.errors import ApiError, KubeError, Reason
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.pacing import Pacing
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key, Raw, Resource
from meshwright.kube.transport import Transport
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.accounts import Account, Accounts
from tests.kubernetes.tools.kubectl import Kubectl, has_condition
from tests.tools import libyaml
from tests.tools.deadline import until
from tools.real_parts.cluster import RunningCluster

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
SERVICES = Resource("", "v1", "services", "Service")

READ = ({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},)

PACING = Pacing(first=0.05, longest=0.5, steady=0.2, short=0.1, silence=100.0)


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap, an object without effect."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Watched:
    """A running reflector and the state that its changes lead to."""

    def __init__(self, reflector: Reflector[Any]) -> None:
        self.reflector = reflector
        self.known: dict[str, Any] = {}
        self.told: list[Mapping[Key, Item[Any] | None]] = []

    def changed(self, changes: Mapping[Key, Item[Any] | None]) -> None:
        """Record changes."""
        self.told.append(dict(changes))
        for (_, name), item in changes.items():
            self.known.pop(name, None)
            if item is not None:
                self.known[name] = item.body

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until a condition is true."""
        await until(true)


@contextlib.asynccontextmanager
async def watched(
    connection: Connection, namespace: str, resource: Resource = MAPS
) -> AsyncIterator[Watched]:
    """Run a reflector for a namespace, without the ConfigMap that each namespace has."""
    fields = "metadata.name!=kube-root-ca.crt" if resource is MAPS else ""
    async with Api(connection) as api:
        reflector: Reflector[Any] = Reflector(
            api, resource, _data, lambda: datetime.now(UTC), namespace=namespace, fields=fields, pacing=PACING
        )
        made = Watched(reflector)
        task = asyncio.create_task(reflector.run(made.changed))
        try:
            yield made
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _data(raw: Raw) -> Any:
    assert raw["kind"] in ("ConfigMap", "EndpointSlice")
    return dict(raw.get("data") or {}) if raw["kind"] == "ConfigMap" else len(raw["endpoints"])


@pytest.fixture
def connection(shared_cluster: RunningCluster) -> Connection:
    """Return the administrator's connection, with a client certificate."""
    return find_connection(shared_cluster.kubeconfig, "")


@pytest.fixture(params=["streamed", "paged"])
def listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """List in either way; pages have few objects."""
    monkeypatch.setattr("meshwright.kube.reflector.reflector.PAGE", 3)
    if request.param == "paged":
        monkeypatch.setattr(Reflector, "_streamed", _never)
    return str(request.param)


async def _never(_: Reflector[Any]) -> bool:
    return False


async def test_reflector_reports_the_list_at_once_and_then_each_change(
    connection: Connection, kubectl: Kubectl, namespace: str, listing: str
) -> None:
    """The list is one report, however many pages it has.

    A change of an unused field, such as a label, is not reported.
    """
    await asyncio.to_thread(kubectl.apply, *(config_map(f"m{number}", a="1") for number in range(8)))
    async with watched(connection, namespace) as made:
        await made.until(made.reflector.listed.is_set)
        assert made.told == [
            {(namespace, f"m{number}"): made.told[0][namespace, f"m{number}"] for number in range(8)}
        ]
        await asyncio.to_thread(kubectl.apply, config_map("new"), config_map("m1", a="2"))
        await asyncio.to_thread(kubectl, "delete", "configmap", "m0")
        expected = {"new": {}, "m1": {"a": "2"}} | {f"m{number}": {"a": "1"} for number in range(2, 8)}
        await made.until(lambda: made.known == expected)
        assert {name: item.body for (_, name), item in made.reflector.items.items()} == expected
        assert made.reflector.figures.errors == {}
        count = made.reflector.figures.events
        await asyncio.to_thread(kubectl, "label", "configmap", "new", "a=b")
        await made.until(lambda: made.reflector.figures.events > count)
        assert (namespace, "new") not in made.told[-1], "nothing that is kept of it is other"


async def test_reflector_keeps_its_objects_while_the_api_server_is_dead(
    shared_cluster: RunningCluster, connection: Connection, kubectl: Kubectl, namespace: str, listing: str
) -> None:
    """The error is reported, and the list afterwards reports only differences."""
    await asyncio.to_thread(kubectl.apply, config_map("cart"), config_map("cats"))
    async with watched(connection, namespace) as made:
        await made.until(lambda: len(made.known) == 2)
        await asyncio.to_thread(shared_cluster.api.kill)
        await made.until(lambda: "connection refused" in made.reflector.figures.error)
        assert sorted(made.known) == ["cart", "cats"]
        await asyncio.to_thread(shared_cluster.compact)
        await asyncio.to_thread(shared_cluster.api.again)
        await made.until(lambda: not made.reflector.figures.error)
        assert [changes for changes in made.told[1:] if changes] == []
        await asyncio.to_thread(kubectl, "delete", "configmap", "cats")
        await made.until(lambda: sorted(made.known) == ["cart"])


async def test_compacted_versions_are_refused_as_gone(
    shared_cluster: RunningCluster, connection: Connection, kubectl: Kubectl, namespace: str
) -> None:
    """A watch from an old version and the rest of an old list have the errors that the client expects."""
    await asyncio.to_thread(kubectl.apply, *(config_map(f"m{number}") for number in range(4)))
    async with Api(connection) as api:
        path = f"{MAPS.path(namespace)}?limit=1"
        first = (await api.read(path))["metadata"]
        await asyncio.to_thread(kubectl.apply, config_map("later"))
        await asyncio.to_thread(shared_cluster.api.kill)
        await asyncio.to_thread(shared_cluster.compact)
        await asyncio.to_thread(shared_cluster.api.again)
        with pytest.raises(ApiError) as caught:
            await api.read(f"{path}&continue={first['continue']}")
        assert caught.value.is_gone, caught.value

        async def watch() -> Raw:
            params = {"resourceVersion": first["resourceVersion"], "timeoutSeconds": "20"}
            async with api.watch(MAPS, namespace, params, 30.0) as batches:
                async for batch in batches:
                    answer: dict[str, Any] = json.loads(batch[0])
                    assert answer["type"] == "ERROR", answer
                    raise ApiError.from_status(
                        answer["object"], verb="watch", resource="configmaps", object_text="configmaps"
                    )
            return {}

        with pytest.raises(ApiError) as caught:
            await watch()
        assert caught.value.is_gone, caught.value


async def test_list_is_restarted_if_its_next_page_is_gone(
    shared_cluster: RunningCluster,
    connection: Connection,
    kubectl: Kubectl,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The history of etcd is compacted between two pages; the restarted list is complete."""
    monkeypatch.setattr("meshwright.kube.reflector.reflector.PAGE", 2)
    monkeypatch.setattr(Reflector, "_streamed", _never)
    await asyncio.to_thread(kubectl.apply, *(config_map(f"m{number}") for number in range(6)))
    parts, pages = Transport.parts, 0

    @contextlib.asynccontextmanager
    async def paged(self: Transport, call: Call) -> AsyncIterator[AsyncIterator[bytes]]:
        nonlocal pages
        pages += 1
        if pages == 2:
            await asyncio.to_thread(kubectl.apply, config_map("later"))
            await asyncio.to_thread(shared_cluster.api.kill)
            await asyncio.to_thread(shared_cluster.compact)
            await asyncio.to_thread(shared_cluster.api.again)
        async with parts(self, call) as result:
            yield result

    monkeypatch.setattr(Transport, "parts", paged)
    async with watched(connection, namespace) as made:
        await made.until(made.reflector.listed.is_set)
        assert sorted(made.known) == ["later", *(f"m{number}" for number in range(6))]
        assert made.reflector.figures.errors.get(Reason.GONE) == 1


async def test_large_objects_are_read(
    connection: Connection, kubectl: Kubectl, namespace: str, listing: str
) -> None:
    """The objects are as large as the API accepts: a thousand endpoints, and a ConfigMap of a megabyte."""
    endpoints = [{"addresses": [f"10.9.{number // 250}.{number % 250}"]} for number in range(1000)]
    await asyncio.to_thread(
        kubectl.apply,
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "large"},
            "addressType": "IPv4",
            "endpoints": endpoints,
        },
    )
    async with Api(connection) as api:
        await api.create(MAPS, namespace, config_map("large", a="x" * 1_000_000))
    async with watched(connection, namespace) as maps, watched(connection, namespace, SLICES) as slices:
        await maps.until(lambda: maps.known and slices.known)
        assert slices.known == {"large": 1000}
        assert len(maps.known["large"]["a"]) == 1_000_000


async def test_writes_own_their_fields_and_report_conflicts(connection: Connection, namespace: str) -> None:
    """Server-side apply removes its own fields that are no longer applied, and keeps others' fields.

    Conflicts and missing objects are distinguished.
    """
    async with Api(connection) as api:
        await api.create(MAPS, namespace, config_map("cart", theirs="1"))
        with pytest.raises(ApiError) as caught:
            await api.create(MAPS, namespace, config_map("cart"))
        assert caught.value.is_conflict
        tried = await api.apply(MAPS, namespace, "cart", {"data": {"ours": "0"}}, manager="m", dry_run=True)
        assert tried["data"] == {"theirs": "1", "ours": "0"}
        await api.apply(MAPS, namespace, "cart", {"data": {"ours": "1", "gone": "1"}}, manager="m")
        done = await api.apply(MAPS, namespace, "cart", {"data": {"ours": "2"}}, manager="m")
        assert done["data"] == {"theirs": "1", "ours": "2"}
        with pytest.raises(ApiError, match="conflict") as caught:
            await api.apply(MAPS, namespace, "cart", {"data": {"ours": "3"}}, manager="other", force=False)
        assert caught.value.is_conflict
        done = await api.patch(MAPS, namespace, "cart", {"data": {"theirs": None}})
        assert done["data"] == {"ours": "2"}
        done = await api.patch(MAPS, namespace, "cart", [{"op": "add", "path": "/data/x", "value": "1"}])
        stale = {**done, "metadata": {**done["metadata"], "resourceVersion": "1"}}
        with pytest.raises(ApiError) as caught:
            await api.replace(MAPS, namespace, "cart", stale)
        assert caught.value.is_conflict
        assert (await api.replace(MAPS, namespace, "cart", {**done, "data": {"y": "1"}}))["data"] == {
            "y": "1"
        }
        await api.delete(MAPS, namespace, "cart")
        with pytest.raises(ApiError) as caught:
            await api.get(MAPS, namespace, "cart")
        assert (caught.value.is_not_found, caught.value.reason) == (True, Reason.NOT_FOUND)


async def test_served_kinds_follow_their_definitions(connection: Connection, kubectl: Kubectl) -> None:
    """A kind is found in all its versions, newest first, and is gone with its definition."""
    definition = objects.definition("tests.example.com", "things", "Thing", "v1alpha1", "v1")
    async with Api(connection) as api:
        before = await served(api)
        assert before.versions_of_kind("", "Service") == (SERVICES,)
        assert before.versions_of_kind("discovery.k8s.io", "EndpointSlice") == (SLICES,)
        assert before.versions_of_kind("tests.example.com", "Thing") == ()
        await asyncio.to_thread(kubectl.apply, definition)
        at = ("crd", "things.tests.example.com")
        await asyncio.to_thread(kubectl.until, lambda crd: has_condition(crd, "Established"), *at)

        async def things() -> tuple[Resource, ...]:
            return (await served(api, {"tests.example.com"})).versions_of_kind("tests.example.com", "Thing")

        await until(things)
        there = await things()
        assert [resource.version for resource in there] == ["v1", "v1alpha1"]
        await asyncio.to_thread(kubectl, "delete", "crd", "things.tests.example.com")

        async def has_none() -> bool:
            return not (await served(api)).versions_of_kind("tests.example.com", "Thing")

        await until(has_none)
        with pytest.raises(ApiError) as caught:
            await api.list(there[0])
        assert caught.value.reason is Reason.NOT_SERVED, caught.value


@pytest.fixture
def account(accounts: Accounts) -> Account:
    """Return an account that may only read ConfigMaps."""
    return accounts.make("reader", READ)


async def test_expired_token_is_rejected_and_its_replacement_is_used(
    account: Account, namespace: str
) -> None:
    """A new token in the file is used from the next request on.

    A missing grant is reported with the account's name.
    """
    account.token_file.write_text(account.token(-60))
    async with Api(find_connection(account.kubeconfig_by_file, "")) as api:
        with pytest.raises(ApiError, match="the API server rejects the credentials") as caught:
            await api.list(MAPS, namespace)
        assert caught.value.reason is Reason.UNAUTHORIZED
        account.token_file.write_text(account.token(600))
        await api.list(MAPS, namespace)
        with pytest.raises(ApiError) as caught:
            await api.list(SERVICES, namespace)
        grants = f"RBAC grants no `list` on `services` to {account.user}"
        assert str(caught.value) == f"may not list services in namespace {namespace}: {grants}"


@pytest.mark.parametrize("given", ["token", "certificate"])
async def test_exec_plugin_credentials_are_used_and_renewed_when_rejected(
    shared_cluster: RunningCluster, account: Account, namespace: str, tmp_path: Path, given: str
) -> None:
    """A plug-in may give a token or a certificate, and is run again if the API server rejects it."""
    keys = shared_cluster.place.keys
    if given == "token":
        statuses = [{"token": account.token(-60)}, {"token": account.token(600)}]
    else:
        shared_cluster.keys.issue("plugged", "plugged", "system:masters")
        certificate, key = ((keys / f"plugged.{item}").read_text() for item in ("crt", "key"))
        statuses = [{"clientCertificateData": certificate, "clientKeyData": key}]
    kubeconfig = _with_plugin(shared_cluster, tmp_path, statuses)
    async with Api(find_connection(kubeconfig, "")) as api:
        await api.list(MAPS, namespace)
    assert (tmp_path / "count").read_text().count("x") == len(statuses)


def _with_plugin(cluster: RunningCluster, folder: Path, statuses: list[dict[str, str]]) -> Path:
    """Write a plug-in that gives these statuses in turn, and a kubeconfig with it."""
    version = "client.authentication.k8s.io/v1"
    for number, status in enumerate(statuses, start=1):
        answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        (folder / f"x{'x' * (number - 1)}").write_text(json.dumps(answer))
    script = folder / "login"
    script.write_text(f"#!/bin/sh\nprintf x >> {folder}/count; cat {folder}/$(cat {folder}/count)\n")
    script.chmod(0o700)
    answer = libyaml.load(cluster.kubeconfig.read_text())
    answer["users"][0]["user"] = {
        "exec": {"apiVersion": version, "command": "./login", "interactiveMode": "Never"}
    }
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(answer))
    return kubeconfig


def _access(path: str, monkeypatch: pytest.MonkeyPatch, context: str) -> tuple[str, str]:
    monkeypatch.setenv("KUBECONFIG", path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    made = find_connection(None, context)
    return made.name, made.server


def test_kubeconfigs_are_merged_like_kubectl(
    kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expected result is the merge of several files by kubectl itself."""
    parts: list[dict[str, Any]] = [
        {"clusters": [{"name": "a", "cluster": {"server": "https://first:1"}}]},
        {
            "current-context": "two",
            "clusters": [{"name": "a", "cluster": {"server": "https://never:1"}}],
            "contexts": [{"name": "two", "context": {"cluster": "b", "user": "u"}}],
        },
        {
            "current-context": "one",
            "clusters": [{"name": "b", "cluster": {"server": "https://second:1"}}],
            "contexts": [
                {"name": "one", "context": {"cluster": "a", "user": "u"}},
                {"name": "two", "context": {"cluster": "a", "user": "u"}},
            ],
            "users": [{"name": "u", "user": {"token": "t"}}],
        },
    ]
    files = []
    for number, part in enumerate(parts):
        files.append(tmp_path / f"config{number}")
        files[-1].write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **part}))
    path = os.pathsep.join([str(files[0]), str(tmp_path / "missing"), *map(str, files[1:])])
    for context in ("", "one", "two"):
        words = [
            "config",
            "view",
            "--minify",
            "--raw",
            "-o",
            "json",
            *([f"--context={context}"] if context else []),
        ]
        done = subprocess.run(
            [kubectl.program, *words],
            env={"KUBECONFIG": path, "HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            capture_output=True,
            check=True,
        )
        (cluster,) = json.loads(done.stdout)["clusters"]
        assert _access(path, monkeypatch, context) == (cluster["name"], cluster["cluster"]["server"])


async def test_client_without_credentials_is_reported_as_anonymous(
    shared_cluster: RunningCluster, tmp_path: Path, namespace: str
) -> None:
    """The error names the user `system:anonymous`."""
    answer = libyaml.load(shared_cluster.kubeconfig.read_text())
    answer["users"][0]["user"] = {}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(answer))
    async with Api(find_connection(kubeconfig, "")) as api:
        with pytest.raises(KubeError, match="RBAC grants no `list` on `configmaps` to system:anonymous"):
            await api.list(MAPS, namespace)
