"""Tests of the writer of pods' Secrets: requests to the cluster before a pod is created, and afterwards."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from certs.ledger.entry import LedgerState
from certs.lifetimes import ProxyTerms
from meshwright.controller.identity.proxy_certificates import ProxyIssuing, without_server
from meshwright.kubernetes.injection.credentials.pod_secrets import ORPHANED_AFTER
from meshwright.kubernetes.injection.credentials.secret_writer import PodSecrets
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.unit.kube.scripted_api import Line, ReceivedRequest, ScriptedServer, api_of
from tests.unit.kubernetes.injection.webhook.test_review import _done
from tests.unit.kubernetes.injection.webhook.test_server import POD, asking, namespaces, review_of, said_of

NOW: Final = datetime(2026, 11, 23, 12, tzinfo=UTC)
LABEL: Final = "meshwright.dev/proxy-uuid"
HOME: Final = "meshwright-system"


@pytest.fixture
def proxies(tmp_path: Path) -> Iterator[ProxyIssuing]:
    """Yield a CA with its ledger."""
    with without_server(
        tmp_path / "state", TrustDomain("cluster.local"), clock, ProxyTerms(), new=True
    ) as made:
        yield made


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration with certificates in Secrets."""
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"identity": "secret"}))
    return path


def clock() -> datetime:
    """Return the fixed time."""
    return NOW


class Cluster:
    """An API server with a namespace, Secrets and pods; methods in `refused` are forbidden."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, Any]] = {}
        self.pods: list[dict[str, Any]] = []
        self.refused: set[str] = set()
        self.accepted: list[str] = []

    async def __call__(self, asked: ReceivedRequest, line: Line) -> None:
        """Answer a request."""
        if asked.method in self.refused:
            await line.refuse(403, "Forbidden", f"{asked.method} of secrets is forbidden")
        elif "/secrets" in asked.path:
            await self._secrets(asked, line)
        elif asked.path.endswith("/pods"):
            wanted = asked.query["labelSelector"].partition("=")[2]
            items = [pod for pod in self.pods if pod["metadata"]["labels"][LABEL] == wanted]
            await line.answer({"kind": "PodList", "metadata": {}, "items": items})
        else:
            await namespaces(asked, line)

    async def _secrets(self, asked: ReceivedRequest, line: Line) -> None:
        name = asked.path.rpartition("/")[2]
        match asked.method:
            case "POST":
                made = json.loads(asked.body)
                made["metadata"]["creationTimestamp"] = f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
                self.secrets[made["metadata"]["name"]] = made
                await line.answer(made, 201)
            case "PATCH":
                patch = json.loads(asked.body)
                there = self.secrets[name]
                there["metadata"] |= {**patch["metadata"]}
                there["data"] |= patch.get("data", {})
                await line.answer(there)
            case "DELETE":
                await line.answer(self.secrets.pop(name))
            case _:
                self.accepted.append(dict(asked.headers)["accept"])
                wanted = asked.query["labelSelector"].partition(f",{LABEL}=")[2]
                items = [
                    {"metadata": secret["metadata"]}
                    for secret in self.secrets.values()
                    if wanted in ("", secret["metadata"]["labels"][LABEL])
                ]
                await line.answer(
                    {"kind": "PartialObjectMetadataList", "metadata": {}, "items": items or None}
                )

    def made(self, uuid: str) -> None:
        """Add a pod."""
        self.pods.append({"metadata": {"name": "one-x", "uid": "the-uid", "labels": {LABEL: uuid}}})


def patched(said: dict[str, Any], document: dict[str, Any] = POD) -> dict[str, Any]:
    """Return the pod after the patch of an answer."""
    result: dict[str, Any] = _done(document, json.loads(base64.b64decode(said["patch"])))
    return result


def uuid_of(pod: dict[str, Any]) -> str:
    """Return a pod's UUID."""
    result: str = pod["metadata"]["labels"][LABEL]
    return result


async def test_certificate_is_written_before_the_pod_is_created(proxies: ProxyIssuing, config: Path) -> None:
    """Only the sidecar mounts the Secret, and the answer does not contain the key."""
    cluster = Cluster()
    async with asking(cluster, config=config, proxies=proxies) as (client, messages):
        answer = await said_of(client, review_of())
    pod = patched(answer)
    uuid = uuid_of(pod)
    ((name, secret),) = cluster.secrets.items()
    assert (messages, name) == (["injected: namespace"], f"meshwright-proxy-{uuid}")
    (entry,) = proxies.entries()
    assert (entry.common_name, entry.state) == (f"{uuid}.default.shop", LedgerState.ISSUED)
    assert secret["metadata"]["annotations"]["meshwright.dev/certificate-serial"] == entry.serial
    (volume,) = (item for item in pod["spec"]["volumes"] if "secret" in item)
    assert volume["secret"]["secretName"] == name
    mounting = [
        item["name"]
        for item in (*pod["spec"]["initContainers"], *pod["spec"]["containers"])
        if volume["name"] in [mount["name"] for mount in item.get("volumeMounts", ())]
    ]
    assert mounting == ["meshwright-sidecar"]
    assert not any("serviceAccountToken" in str(item) for item in pod["spec"]["volumes"])
    assert secret["data"]["proxy.key"] not in json.dumps(answer)


async def test_second_review_of_a_pod_issues_no_second_certificate(
    proxies: ProxyIssuing, config: Path
) -> None:
    """Other webhooks may have changed the pod meanwhile.

    A pod with a UUID that was not just assigned is a copy and gets a UUID of its own.
    """
    cluster = Cluster()
    async with asking(cluster, config=config, proxies=proxies) as (client, _):
        pod = patched(await said_of(client, review_of()))
        again = await said_of(client, review_of(pod))
        assert ("patch" in again, len(cluster.secrets)) == (False, 1)
        copy = {**pod, "metadata": {**pod["metadata"], "labels": {LABEL: "0dd5"}}}
        other = patched(await said_of(client, review_of(copy)), copy)
    assert uuid_of(other) not in ("0dd5", uuid_of(pod))
    assert set(cluster.secrets) == {f"meshwright-proxy-{uuid_of(item)}" for item in (pod, other)}
    (volume,) = (item for item in other["spec"]["volumes"] if "secret" in item)
    assert volume["secret"]["secretName"] == f"meshwright-proxy-{uuid_of(other)}"


async def test_dry_run_creates_no_secret_and_no_certificate(proxies: ProxyIssuing, config: Path) -> None:
    """The registration promises `NoneOnDryRun`."""
    cluster = Cluster()
    async with asking(cluster, config=config, proxies=proxies) as (client, _):
        answer = await said_of(client, review_of(dryRun=True))
    assert (answer["allowed"], "patch" in answer) == (True, True)
    assert (cluster.secrets, proxies.entries()) == ({}, ())


async def test_pod_without_its_secret_is_refused_and_the_certificate_revoked(
    proxies: ProxyIssuing, config: Path
) -> None:
    """The refusal has the cluster's message. The certificate has no holder, so it is revoked."""
    cluster = Cluster()
    cluster.refused = {"POST"}
    async with asking(cluster, config=config, proxies=proxies) as (client, messages):
        answer = await said_of(client, review_of())
    assert (answer["allowed"], messages) == (False, ["refused: no-secret"])
    assert "identity is secret, but the Secret of the pod cannot be created:" in answer["status"]["message"]
    assert "POST of secrets is forbidden" in answer["status"]["message"]
    assert [entry.state for entry in proxies.entries()] == [LedgerState.REVOKED]


@contextlib.asynccontextmanager
async def keeping(
    cluster: Cluster,
    proxies: ProxyIssuing,
    now: list[datetime],
    leads: Callable[[], bool] | None = None,
) -> AsyncIterator[PodSecrets]:
    """Run the keeper of a cluster's Secrets, with a clock that tests set."""
    async with ScriptedServer(cluster) as server, api_of(server) as api:
        made = PodSecrets(api, HOME, proxies, lambda: now[0], lambda: True, leads=leads)
        ((_, work),) = made.works()
        task = asyncio.create_task(work)
        try:
            yield made
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def until(condition: Any) -> None:
    """Wait until a condition holds; TimeoutError after ten seconds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_secret_is_owned_by_its_pod_and_renewed_in_time(
    proxies: ProxyIssuing,
) -> None:
    """The cluster's garbage collector deletes the Secret with its pod.

    All lists request metadata only, never keys.
    """
    cluster, now = Cluster(), [NOW]
    name = ProxyName.parse("5b1c.default.shop")
    async with keeping(cluster, proxies, now) as keeper:
        await keeper.give(name)
        cluster.made("5b1c")
        keeper.look()
        (secret,) = cluster.secrets.values()
        await until(lambda: "ownerReferences" in secret["metadata"])
        assert [owner_reference["uid"] for owner_reference in secret["metadata"]["ownerReferences"]] == [
            "the-uid"
        ]
        first, before = proxies.entries()[0], dict(secret["data"])
        now[0] = NOW + (first.not_after - NOW) * 0.7
        keeper.look()
        await until(lambda: secret["data"] != before)
        assert {item for item in before if before[item] != secret["data"][item]} == {"proxy.key", "proxy.pem"}
        assert [entry.state for entry in proxies.entries()] == [LedgerState.ISSUED] * 2
    assert set(cluster.accepted) == {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


async def test_secret_of_a_pod_that_was_never_created_is_removed(proxies: ProxyIssuing) -> None:
    """A quota may refuse a pod after its admission: the Secret is deleted and its certificate revoked."""
    cluster, now = Cluster(), [NOW]
    async with keeping(cluster, proxies, now) as keeper:
        await keeper.give(ProxyName.parse("5b1c.default.shop"))
        now[0] = NOW + ORPHANED_AFTER - timedelta(seconds=1)
        keeper.look()
        looks = len(cluster.accepted)
        await until(lambda: len(cluster.accepted) > looks + 1)
        assert len(cluster.secrets) == 1
        now[0] = NOW + ORPHANED_AFTER
        keeper.look()
        await until(lambda: not cluster.secrets)
        assert [entry.state for entry in proxies.entries()] == [LedgerState.REVOKED]
        assert await keeper.uuid_for("shop", "5b1c") != "5b1c"


async def test_forbidden_update_of_secrets_is_reported(proxies: ProxyIssuing) -> None:
    """The remark has the cluster's message."""
    cluster, now = Cluster(), [NOW]
    async with keeping(cluster, proxies, now) as keeper:
        for item in ("5b1c", "0dd5"):
            await keeper.give(ProxyName.parse(f"{item}.default.shop"))
            cluster.made(item)
        cluster.refused = {"PATCH"}
        keeper.look()
        await until(lambda: keeper.error)
        assert list(keeper.remarks()) == [f"cannot update the Secrets of pods: {keeper.error}"]
        assert "PATCH of secrets is forbidden" in keeper.error


async def test_second_review_at_another_server_keeps_the_uuid(proxies: ProxyIssuing) -> None:
    """That server finds the Secret in the cluster, and issues none. A Pod that comes later is a copy."""
    cluster, now = Cluster(), [NOW]
    name = ProxyName.parse("5b1c.default.shop")
    async with (
        keeping(cluster, proxies, now, lambda: True) as one,
        keeping(cluster, proxies, now, lambda: False) as two,
    ):
        assert await two.uuid_for("shop", "5b1c") != "5b1c"
        await one.give(name)
        assert await two.uuid_for("shop", "5b1c") == "5b1c"
        assert await two.uuid_for("shop", "0dd5") != "0dd5"
        await two.give(name)
        assert (len(cluster.secrets), len(proxies.entries())) == (1, 1)
        cluster.made("5b1c")
        one.look()
        (secret,) = cluster.secrets.values()
        await until(lambda: "ownerReferences" in secret["metadata"])
        two.look()
        async with asyncio.timeout(10):
            while await two.uuid_for("shop", "5b1c") == "5b1c":
                await asyncio.sleep(0.01)


async def test_only_the_leader_renews_and_removes_secrets(proxies: ProxyIssuing) -> None:
    """Another server has the Pods own the Secrets that it gave, and leaves the rest to the leader."""
    cluster, now, leads = Cluster(), [NOW], [False]
    async with keeping(cluster, proxies, now, lambda: leads[0]) as keeper:
        for uuid in ("5b1c", "0dd5"):
            await keeper.give(ProxyName.parse(f"{uuid}.default.shop"))
        cluster.made("5b1c")
        keeper.look()
        owned, orphan = cluster.secrets.values()
        await until(lambda: "ownerReferences" in owned["metadata"])
        before = dict(owned["data"])
        now[0] = NOW + (proxies.entries()[0].not_after - NOW) * 0.7
        keeper.look()
        looks = len(cluster.accepted)
        await until(lambda: len(cluster.accepted) > looks)
        assert (owned["data"], [*cluster.secrets.values()]) == (before, [owned, orphan])
        leads[0] = True
        keeper.look()
        await until(lambda: owned["data"] != before and [*cluster.secrets.values()] == [owned])
        assert [entry.state for entry in proxies.entries()].count(LedgerState.REVOKED) == 1
