"""Tests of the injector over HTTP with malformed reviews and a slow or faulty API server."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.metrics.registry import Metrics
from meshwright.controller.kubernetes.injection_file import InjectionFile
from meshwright.kubernetes.admission import turns
from meshwright.kubernetes.admission.server import patience
from meshwright.kubernetes.injection.credentials.secret_writer import PodSecrets
from meshwright.kubernetes.injection.webhook import server as injection
from meshwright.kubernetes.injection.webhook.lookup import Lookup
from meshwright.kubernetes.injection.webhook.review import Answer, Cause, Result
from meshwright.kubernetes.injection.webhook.server import Injection
from meshwright.mesh.config import MeshConfig
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import InjectorContext
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.registry import DriverRegistry
from tests.unit.kube.scripted_api import Line, Part, ReceivedRequest, ScriptedServer, api_of
from tests.unit.kubernetes.injection.credentials.test_roots_writer import _merged

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "one-", "namespace": "shop"},
    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
}
DRIVERS = DriverRegistry.discover().drivers


def review_of(document: object = POD, **more: Any) -> dict[str, Any]:
    """Return the review of a new pod."""
    request = {"uid": "u1", "operation": "CREATE", "namespace": "shop", "object": document, **more}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@contextlib.asynccontextmanager
async def asking(
    play: Part,
    *known: str,
    config: Any = None,
    proxies: Any = None,
    drivers: Any = DRIVERS,
    kept: list[Injection] | None = None,
) -> AsyncIterator[tuple[Any, list[str]]]:
    """Yield a client of the injector with this API server, and the list of recorded results.

    `proxies` issues certificates for pods with Secrets. The injector is appended to `kept`.
    """
    messages: list[str] = []
    async with ScriptedServer(play) as server, api_of(server) as api:
        made = Injection(
            InjectionFile(config, "meshwright-system", Metrics()),
            Lookup(api, lambda: _merged(*known)),
            drivers,
            {"MESHWRIGHT_SIDECAR_IMAGE": "proxy:1", "MESHWRIGHT_INIT_IMAGE": "proxy:1"},
            MeshConfig,
            lambda result, reason, _: messages.append(f"{result}: {reason}"),
            PodSecrets(api, "meshwright-system", proxies, lambda: datetime.now(UTC), lambda: False),
        )
        if kept is not None:
            kept.append(made)
        app = web.Application()
        made.add_to(app)
        async with TestClient(TestServer(app)) as client:
            yield client, messages


async def namespaces(asked: ReceivedRequest, line: Line) -> None:
    """Answer as an API server with the namespace and its label."""
    if asked.path == "/version":
        await line.answer({"major": "1", "minor": "29+"})
    else:
        metadata = {"name": "shop", "labels": {"meshwright.dev/inject": "true"}}
        await line.answer({"kind": "NamespaceList", "metadata": {}, "items": [{"metadata": metadata}]})


async def away(asked: ReceivedRequest, line: Line) -> None:
    """Send no answer."""
    del asked
    await line.hang()


async def said_of(client: Any, review: object, seconds: int = 10) -> dict[str, Any]:
    """Return the response to a review with a timeout in seconds."""
    answer = await client.post(f"/inject?timeout={seconds}s", json=review)
    assert answer.status == 200
    result: dict[str, Any] = (await answer.json())["response"]
    assert result["uid"] == "u1"
    return result


async def test_pod_gets_its_sidecar_also_in_a_dry_run() -> None:
    """The pod has only a generateName yet."""
    async with asking(namespaces) as (client, messages):
        for review in (review_of(), review_of(dryRun=True)):
            result = await said_of(client, review)
            assert (result["allowed"], result["patchType"]) == (True, "JSONPatch")
        assert messages == ["injected: namespace"] * 2


@pytest.mark.parametrize(
    ("body", "content", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (json.dumps(review_of(None)).encode(), "application/json", 400),
        (json.dumps(review_of()).encode(), "text/plain", 415),
        (json.dumps(review_of()).encode(), "application/json; charset=utf-8", 200),
    ],
)
async def test_malformed_review_is_refused_by_http_status(body: bytes, content: str, status: int) -> None:
    """A malformed body is answered with 400 and a wrong content type with 415, and no result is recorded."""
    async with asking(namespaces) as (client, messages):
        answer = await client.post("/inject", data=body, headers={"Content-Type": content})
        assert (answer.status, len(messages)) == (status, int(status == 200))


@pytest.mark.parametrize(
    "review",
    [
        review_of(operation="UPDATE", oldObject=POD),
        review_of(operation="DELETE", object=None, oldObject=POD),
        review_of({**POD, "kind": "Service"}),
    ],
)
async def test_only_new_pods_are_patched(review: Any) -> None:
    """A registration for further operations or kinds has no effect on their objects."""
    async with asking(namespaces) as (client, messages):
        result = await said_of(client, review)
        assert (result["allowed"], "patch" in result, messages) == (True, False, ["skipped: not-a-new-pod"])


async def test_known_namespace_is_enough_while_the_api_server_is_silent() -> None:
    """With an unknown namespace the pod is refused in time, with the cause in the message."""
    async with asking(away, "shop") as (client, _):
        assert (await said_of(client, review_of(), 2))["allowed"] is True
    async with asking(away) as (client, messages):
        result = await said_of(client, review_of(), 2)
        assert (result["allowed"], messages) == (False, ["refused: namespace-unknown"])
        assert (
            "cannot read the namespace of the pod: the API server does not answer"
            in result["status"]["message"]
        )


async def test_pod_that_waits_too_long_for_its_turn_is_refused() -> None:
    """Many pods share one thread, and each is answered before the API server gives up."""
    turn = threading.Event()
    async with asking(namespaces) as (client, messages):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(injection, "answer", lambda *_: turn.wait(60))
            try:
                answer = await asyncio.gather(*(said_of(client, review_of(), 3) for _ in range(5)))
            finally:
                turn.set()
        assert messages == ["refused: late"] * 5
        assert all("the injector did not finish within 2 s" in item["status"]["message"] for item in answer)


async def test_pods_of_one_namespace_do_not_delay_another_namespace() -> None:
    """Namespaces take turns: the other namespace's pod is injected after one more of the waiting pods."""
    patched: list[str] = []
    began, go = threading.Event(), threading.Event()

    class Slow(EnvoyDriver):
        def patch(self, context: InjectorContext) -> Pod:
            patched.append(context.pod["metadata"]["name"])
            began.set()
            go.wait(60)
            return super().patch(context)

    def asked_for(name: str, namespace: str) -> "asyncio.Task[dict[str, Any]]":
        pod = {**POD, "metadata": {"name": name, "namespace": namespace}}
        return asyncio.create_task(said_of(client, review_of(pod, namespace=namespace)))

    kept: list[Injection] = []
    async with asking(namespaces, drivers={"envoy": Slow()}, kept=kept) as (client, _):
        many = [asked_for("first", "shop")]
        await asyncio.to_thread(began.wait, 60)
        many += [asked_for("next", "shop") for _ in range(5)]
        while kept[0].waiting < 6:
            await asyncio.sleep(0)
        one = asked_for("one", "books")
        while kept[0].waiting < 7:
            await asyncio.sleep(0)
        go.set()
        assert all(item["allowed"] for item in await asyncio.gather(one, *many))
    assert patched == ["first", "next", "one", *["next"] * 4]


async def test_excess_pods_of_one_namespace_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names the namespace, and the pod's controller tries again."""
    turn = threading.Event()
    monkeypatch.setattr(turns, "MOST_OF_ONE", 1)
    monkeypatch.setattr(injection, "answer", lambda *_: turn.wait(60))
    kept: list[Injection] = []
    async with asking(namespaces, kept=kept) as (client, messages):
        waiting = [asyncio.create_task(said_of(client, review_of(), 2)) for _ in range(2)]
        while kept[0].waiting < 2:
            await asyncio.sleep(0)
        result = await said_of(client, review_of())
        turn.set()
        assert (result["allowed"], messages) == (False, ["refused: late"])
        assert "too many pods of namespace shop wait for their sidecars" in result["status"]["message"]
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_time_limit_is_that_of_the_injection_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    """The injection webhook has ten seconds and the policy webhook five, less some time for the answer."""
    asked: list[float] = []

    async def answered(_: Injection, review: object, seconds: float) -> Answer:
        del review
        asked.append(seconds)
        return Answer(Result.SKIPPED, "tried", Cause.NO_POD)

    monkeypatch.setattr(Injection, "_answered", answered)
    async with asking(namespaces) as (client, _):
        for seconds in (10, 30, 3):
            await said_of(client, review_of(), seconds)
    assert asked == [9, 9, 2]
    assert (patience("10s"), patience("")) == (4, 4)


async def test_internal_error_refuses_the_pod_and_names_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message names the log of the control plane, because the pod's owner sees only the refusal."""

    def fails(*_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(injection, "answer", fails)
    async with asking(namespaces) as (client, messages):
        result = await said_of(client, review_of())
        assert (result["allowed"], messages) == (False, ["refused: fault"])
        assert (
            "the injector failed with an internal error (see the log of the control plane);"
            in result["status"]["message"]
        )


async def test_namespace_with_an_invalid_annotation_keeps_its_injection_switch() -> None:
    """The policy reader refuses the namespace for its `permissive` annotation.

    Injection reads only its own switches.
    """

    async def mistaken(asked: ReceivedRequest, line: Line) -> None:
        if asked.path == "/version":
            await line.answer({"major": "1", "minor": "29"})
            return
        annotations = {"meshwright.dev/permissive": "maybe", "meshwright.dev/inject": "false"}
        metadata = {"name": "shop", "annotations": annotations}
        await line.answer({"kind": "NamespaceList", "metadata": {}, "items": [{"metadata": metadata}]})

    async with asking(mistaken) as (client, messages):
        result = await said_of(client, review_of())
        assert (result["allowed"], messages) == (True, ["skipped: namespace"])
        assert result["auditAnnotations"] == {
            "injection": "skipped: the namespace's annotation meshwright.dev/inject is false"
        }


async def test_pod_of_an_unlisted_namespace_is_refused() -> None:
    """The namespace may be labelled `false`, so no default is assumed.

    The refusal lets the pod's controller try again.
    """

    async def empty(asked: ReceivedRequest, line: Line) -> None:
        if asked.path == "/version":
            await line.answer({"major": "1", "minor": "29"})
        else:
            await line.answer({"kind": "NamespaceList", "metadata": {}, "items": []})

    async with asking(empty) as (client, messages):
        result = await said_of(client, review_of())
        assert (result["allowed"], messages) == (False, ["refused: namespace-unknown"])
        text = "cannot read the namespace of the pod: the API server does not return namespace 'shop' (yet)"
        assert text in result["status"]["message"]
